"""The registry of remedies: small functions, each of which derives one kind of remedy from a failed call.

    @remedy("mat1 and mat2 shapes cannot be multiplied")
    def features(failure):
        ...
        return "nn.Linear(392, 16)"

A remedy is code that replaces what the user wrote; a function that cannot derive it with certainty returns None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from tinytorch.inspect.mistakes.failure import Failure

__all__ = ["F", "remedies_of", "remedy"]

F = TypeVar("F", bound=Callable[[Failure], "str | None"])
_found: list[tuple[tuple[str, ...], Callable[[Failure], str | None]]] = []


def remedy(*words: str) -> Callable[[F], F]:
    """Return a decorator that registers a remedy for messages in which one of the texts occurs."""

    def declare(function: F) -> F:
        _found.append((words, function))
        return function

    return declare


def remedies_of(failure: Failure) -> Iterable[str]:
    """Yield the remedies of a failed call; a function of the registry that fails itself has none."""
    for words, function in _found:
        if any(word in failure.text for word in words):
            try:
                found = function(failure)
            except Exception:
                continue
            if found:
                yield re.sub(r"\s+", " ", found)
