"""Profiling: the time that each line of a program takes."""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Callable
from typing import Any

from tinytorch.compiler.general import General
from tinytorch.compiler.program import FILE, Program

#: Seconds, by file and line number of a program.
Times = dict[tuple[str, int], float]


def times_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Times:
    """Call a compiled function, and return the time of each line that runs in its programs."""
    spent: Times = collections.defaultdict(float)
    place: tuple[str, int] | None = None
    since = 0.0

    def enter(frame: Any, event: str, arg: Any) -> Any:
        return follow if frame.f_code.co_filename.startswith(FILE) else None

    def follow(frame: Any, event: str, arg: Any) -> Any:
        nonlocal place, since
        now = time.perf_counter()
        if place is not None:
            spent[place] += now - since
        place = (frame.f_code.co_filename, frame.f_lineno) if event == "line" else None
        since = time.perf_counter()
        return follow

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        function(*args, **kwargs)
    finally:
        sys.settrace(before)
    return spent


def shown_times(program: Program | General, spent: Times) -> list[str]:
    """Return the lines of a program that ran, with their times."""
    lines = program.source.splitlines()
    own = [(number, seconds) for (file, number), seconds in spent.items() if file == program.file]
    return [f"    {seconds * 1e6:9.1f} us  {lines[number - 1].strip()}" for number, seconds in sorted(own)]
