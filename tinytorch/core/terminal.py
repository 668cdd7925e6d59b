"""What a terminal shows: lines that break between words, the error of a program, a line below what a program prints."""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["Status", "columns", "failed", "interrupted", "shown", "wrapped"]


def columns(stream: Any) -> int:
    """Return the width of a terminal; 0 if the stream is none (a file, a pipe, a notebook)."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or 80) if stream.isatty() else 0
    except (AttributeError, OSError, ValueError):
        return 0


def wrapped(text: str, stream: Any) -> str:
    """Return a text whose lines break between words where a terminal would break them anywhere.

    What goes elsewhere stays as it is: whoever searches a log finds a sentence in one line, and any viewer breaks it.
    """
    width = columns(stream)
    if not width or max(map(len, text.split("\n"))) <= width:
        return text
    from textwrap import TextWrapper  # (seldom needed)

    broken = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.split("\n"):
        words = line.lstrip()
        broken.initial_indent = " " * (len(line) - len(words))
        broken.subsequent_indent = broken.initial_indent and broken.initial_indent + "  "
        lines += broken.wrap(words) or [""]
    return "\n".join(lines)


def shown(to_text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a `__str__` that is wrapped where `print` shows it on a terminal."""
    return functools.wraps(to_text)(lambda self: wrapped(to_text(self), sys.stdout))


def failed(error: Exception, tool: str) -> bool:
    """Show an error of a program that a tool runs as Python shows it; return whether the program had begun."""
    trace, folder = error.__traceback__, os.path.dirname(os.path.dirname(__file__)) + os.sep
    while trace is not None and (
        trace.tb_frame.f_globals.get("__name__") == "runpy" or trace.tb_frame.f_code.co_filename.startswith(folder)
    ):
        trace = trace.tb_next
    if trace is not None or isinstance(error, SyntaxError):
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    elif isinstance(error, OSError):
        print(f"{tool}: can't open file {error.filename!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
    else:
        print(f"{tool}: {error}", file=sys.stderr)
    return trace is not None


def interrupted(tool: str) -> int:
    """Say that Ctrl-C has ended a tool, in place of what it was drawing; return the exit status."""
    blank = " " * (columns(sys.stderr) - 1)
    print(f"\r{blank}\r{tool}: interrupted" if blank else f"{tool}: interrupted", file=sys.stderr)
    return 130


class Status:
    """A line of a tool on the terminal, while a program runs that prints, too; nothing elsewhere.

    It is erased before the program prints, and drawn again later, on an empty line alone: where the program has begun a
    line (a question, a bar of its own), nothing is drawn until it ends it. It hears what Python writes by the streams
    that are `sys.stdout` and `sys.stderr` when it is made, also through others that hold them (`logging`, `tqdm`). What
    a program writes into a pipe (`| tee log`) comes to the terminal unheard: nothing is drawn then while it runs.
    """

    def __init__(self) -> None:
        self._drawn, self._next, self._process = 0, 0.0, os.getpid()
        self._begun = False  # whether the program has begun a line
        self._file, self._piped = sys.stderr, False
        with suppress(AttributeError, OSError, ValueError):
            self._piped = stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
        self._streams = [each for each in {sys.stdout, sys.stderr} if columns(self._file) and columns(each)]
        if self._streams:
            self._write, self._flush = self._file.write, self._file.flush
        for each in self._streams:
            self._hear(each, each.write, each.flush)

    def _hear(self, stream: Any, write: Any, flush: Any) -> None:
        def heard(text: str) -> int:
            self._put("")
            self._begun = not text.endswith("\n") if text else self._begun
            return int(write(text))

        def flushed() -> None:
            self._put("")  # (another process may write next)
            flush()

        stream.write, stream.flush = heard, flushed

    def show(self, text: str, runs: bool) -> None:
        """Show a text in place of the last one, at most ten times a second; `runs` says whether the program runs."""
        if self._streams and not (self._begun or (runs and self._piped)) and time.monotonic() > self._next:
            self._next = time.monotonic() + 0.1
            self._put(text[: columns(self._file) - 3])

    def _put(self, text: str) -> None:
        if (text or self._drawn) and os.getpid() == self._process:
            erased = " " * (self._drawn + 2)  # (and the ^C of a keyboard)
            self._write(f"\r{erased}\r{text}")
            self._flush()
            self._drawn = len(text)

    def close(self) -> None:
        """Erase the line and hear no more."""
        self._put("")
        for each in self._streams:
            del each.write, each.flush
        self._streams = []
