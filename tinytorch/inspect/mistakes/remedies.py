"""The registry of remedies: small functions, each of which derives one kind of remedy from a failed call.

    @remedy("mat1 and mat2 shapes cannot be multiplied")
    def features(failure):
        ...
        return "nn.Linear(392, 16)"

A remedy is code that replaces what the user wrote, with the number of its line if that is not the line that failed, or
"file:line" for another file; a function that cannot derive it with certainty returns None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tinytorch.inspect.mistakes.failure import Failure

__all__ = ["fact", "facts_of", "remedies_of", "remedy"]

Derive = Callable[[Failure], "str | tuple[str, int] | tuple[str, str] | None"]
F = TypeVar("F", bound=Derive)
_remedies: list[tuple[tuple[str, ...], Derive]] = []
_patterns: dict[int, re.Pattern[str]] = {}
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
    """Return the remedies of a failed call, as notes."""
    found = []
    for text, line in _derived(_remedies, failure):
        place = "" if line in (0, failure.user.line) else f" at {failure.user.file}:{line}"
        place = f" at {line}" if isinstance(line, str) else place
        found.append(f"remedy{place}: {text}")
    return found


def facts_of(failure: Failure) -> list[str]:
    """Return what else is known of a failed call."""
    return [text for text, _ in _derived(_facts, failure)]


def _derived(registry: list[tuple[tuple[str, ...], Derive]], failure: Failure) -> list[tuple[str, int | str]]:
    """Return what the functions of a registry derive from a failed call; one that fails itself derives nothing."""
    found: dict[tuple[str, int | str], None] = {}
    pattern = _patterns.get(id(registry))
    if pattern is None:  # (all declarations have been made by now)
        texts = sorted({word for words, _ in registry for word in words}, key=len)
        pattern = _patterns[id(registry)] = re.compile("|".join(map(re.escape, texts)))
    if pattern.search(failure.text) is None:
        return []
    for words, function in registry:
        if any([word in failure.text for word in words]):
            try:
                derived = function(failure)
            except Exception:
                continue
            if derived:
                text, line = (derived, 0) if isinstance(derived, str) else derived
                found[re.sub(r"\s+", " ", text), line] = None
    return list(found)
