"""The registry of remedies: small functions, each of which derives one kind of remedy from a failed call.

    @remedy("mat1 and mat2 shapes cannot be multiplied")
    def features(failure):
        ...
        return "nn.Linear(392, 16)"

A remedy is code that replaces what the user wrote; a function that cannot derive it with certainty returns None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tinytorch.inspect.mistakes.failure import Failure

__all__ = ["fact", "facts_of", "remedies_of", "remedy"]

Derive = Callable[[Failure], "str | None"]
F = TypeVar("F", bound=Derive)
_remedies: list[tuple[tuple[str, ...], Derive]] = []
_facts: list[tuple[tuple[str, ...], Derive]] = []


def remedy(*words: str) -> Callable[[F], F]:
    """Return a decorator that registers a remedy for messages in which one of the texts occurs."""

    return _registering(_remedies, words)


def fact(*words: str) -> Callable[[F], F]:
    """Return a decorator that registers what else a note says on messages in which one of the texts occurs."""
    return _registering(_facts, words)


def _registering(registry: list[tuple[tuple[str, ...], Derive]], words: tuple[str, ...]) -> Callable[[F], F]:
    def declare(function: F) -> F:
        registry.append((words, function))
        return function

    return declare


def remedies_of(failure: Failure) -> list[str]:
    """Return the remedies of a failed call."""
    return _derived(_remedies, failure)


def facts_of(failure: Failure) -> list[str]:
    """Return what else is known of a failed call."""
    return _derived(_facts, failure)


def _derived(registry: list[tuple[tuple[str, ...], Derive]], failure: Failure) -> list[str]:
    """Return what the functions of a registry derive from a failed call; one that fails itself derives nothing."""
    found: dict[str, None] = {}
    for words, function in registry:
        if any(word in failure.text for word in words):
            try:
                text = function(failure)
            except Exception:
                continue
            if text:
                found[re.sub(r"\s+", " ", text)] = None
    return list(found)
