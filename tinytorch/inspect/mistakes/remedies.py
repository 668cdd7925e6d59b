"""The registry of remedies: small functions, each of which derives one kind of remedy from a failed call.

    @remedy("is not a Module subclass")
    def module_of_function(failure):
        ...
        return "nn.ReLU()"

A remedy is code that replaces what the user wrote, with the number of its line if that is not the line that failed, or
"file:line" for another file; a function that cannot derive it with certainty returns None,
or raises `Unknown`. Then edits of the code are tried, which may find one nevertheless.

What else fails in a function is a fault of it: users do not see it, and tests do (`core.notes.shows_faults`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tinytorch.core.notes import shows_faults
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.trial import Unknown
from tinytorch.inspect.mistakes.trying import found_by_trying

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
    found = _derived(_remedies, failure) or _tried(failure)
    return [f"remedy{_place(failure, line)}: {text}" for text, line in found]


def _tried(failure: Failure) -> list[tuple[str, int | str]]:
    try:
        found = found_by_trying(failure)
    except Unknown:
        return []
    except Exception:
        if shows_faults():
            raise
        return []
    return [(each, 0) if isinstance(each, str) else each for each in found]


def _place(failure: Failure, line: int | str) -> str:
    """Return where a remedy belongs, if that is not the line that failed."""
    if isinstance(line, str):
        return f" at {line}"
    return "" if line in (0, failure.user.line) else f" at {failure.user.file}:{line}"


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
            except Unknown:
                continue
            except Exception:
                if shows_faults():
                    raise
                continue
            if derived:
                text, line = (derived, 0) if isinstance(derived, str) else derived
                text = text if registry is _facts or '"' in text else text.replace("'", '"')
                found[re.sub(r"\s+", " ", text), line] = None
    return list(found)
