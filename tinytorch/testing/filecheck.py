"""`torch.testing.FileCheck`: checks that a text has other texts in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["FileCheck"]


class FileCheck:
    """Checks of a text, one after another: each looks behind what the one before it has found.

    Example:
        >>> torch.testing.FileCheck().check("relu").check_not("sin").check("add").run("relu, add")
    """

    def __init__(self) -> None:
        self._checks: list[tuple[str, str, int, bool]] = []  # kind, text, count, exactly

    def _with(self, kind: str, text: str, count: int = 1, exactly: bool = False) -> FileCheck:
        self._checks.append((kind, text, count, exactly))
        return self

    def check(self, test_string: str) -> FileCheck:
        """Look for a text."""
        return self._with("CHECK", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """Look that a text is not between what the checks before and after this one find."""
        return self._with("CHECK-NOT", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """Look for a text in the rest of the line."""
        return self._with("CHECK-SAME", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """Look for a text in the next line."""
        return self._with("CHECK-NEXT", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """Look for a text several times; if `exactly`, not once more in the rest of the text."""
        return self._with("CHECK-COUNT", test_string, count, exactly)

    def check_dag(self, test_string: str) -> FileCheck:
        """Look for a text; the texts of successive calls of this method may be in any order."""
        return self._with("CHECK-DAG", test_string)

    def check_regex(self, pattern: str) -> FileCheck:
        """Look for a match of a regular expression."""
        return self._with("CHECK-REGEX", pattern)

    def run(self, test_string: Any) -> None:
        """Check a text.

        Args:
            test_string: the text, or an object whose `str` is checked.

        Raises:
            RuntimeError: a check has failed.
        """
        text = str(test_string)
        place = start = 0  # where the next check starts, and where the current group of DAG checks does
        excluded: list[str] = []
        before = ""
        for kind, wanted, count, exactly in self._checks:
            if kind == "CHECK-NOT":
                excluded.append(wanted)
                before = kind
                continue
            if kind != "CHECK-DAG" or before != kind:
                start = place
            origin = start if kind == "CHECK-DAG" else place
            first, end = self._find(kind, text, wanted, origin)
            for _ in range(count - 1):
                end = self._find(kind, text, wanted, end)[1]
            if exactly and wanted in text[end:]:
                raise RuntimeError(_message(f'Expected to not find "{wanted}" but found it', kind, wanted, text[end:]))
            self._exclude(excluded, text[place:first])
            excluded, before, place = [], kind, max(place, end)
        self._exclude(excluded, text[place:])

    def _find(self, kind: str, text: str, wanted: str, origin: int) -> tuple[int, int]:
        """Return where a text begins and ends."""
        stop = len(text)
        if kind == "CHECK-NEXT":
            origin = text.find("\n", origin) + 1 or stop
        if kind in ("CHECK-NEXT", "CHECK-SAME"):
            line_end = text.find("\n", origin)
            stop = stop if line_end < 0 else line_end
        found: Callable[..., Any] = re.compile(wanted if kind == "CHECK-REGEX" else re.escape(wanted)).search
        match = found(text, origin, stop)
        if match is None:
            kind_of = "regex " if kind == "CHECK-REGEX" else ""
            raise RuntimeError(
                _message(f'Expected to find {kind_of}"{wanted}" but did not find it', kind, wanted, text)
            )
        return match.span()

    def _exclude(self, excluded: list[str], text: str) -> None:
        for wanted in excluded:
            if wanted in text:
                message = f'Expected to not find "{wanted}" but found it'
                raise RuntimeError(_message(message, "CHECK-NOT", wanted, text))


def _message(what: str, kind: str, wanted: str, text: str) -> str:
    return f"{what}\nSearched string:\n{text}\nFrom {kind}: {wanted}\n"
