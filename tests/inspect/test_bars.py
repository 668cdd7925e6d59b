"""A bar on a terminal; one line at the end elsewhere; what a terminal shows of a tool beside a program."""

from __future__ import annotations

import io
import itertools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import pytest
from tqdm import tqdm

from tinytorch import inspect
from tinytorch.core import notes, terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_at_the_end(capsys: Any) -> None:
    with inspect.progress(range(300), unit="batch", desc="epoch 1") as bar:
        for k in bar:
            bar.set_postfix(loss=f"{k:.1f}")
            if k % 100 == 0:
                tqdm.write(f"step {k}")
                assert capsys.readouterr() == (f"step {k}\n", "")
    said = capsys.readouterr().err
    assert re.fullmatch(r"epoch 1: 300/300 batch in 00:00, [\d.]+batch/s, loss=299\.0\n", said)


def test_a_line_without_a_total_and_after_an_error() -> None:
    file = io.StringIO()
    with inspect.progress(unit="B", unit_scale=True, file=file) as bar:
        bar.update(123456)
    assert re.fullmatch(r"123kB in 00:00, \S+B/s\n", file.getvalue())
    file = io.StringIO()
    with pytest.raises(KeyError), inspect.progress(range(10), file=file) as bar:
        for k in bar:
            if k == 3:
                raise KeyError
    assert file.getvalue().startswith("3/10 in 00:00")


def test_nothing_if_disabled() -> None:
    for file in (io.StringIO(), Terminal()):
        assert list(inspect.progress(range(3), disable=True, file=file)) == [0, 1, 2]
        assert file.getvalue() == ""


def test_a_bar_on_a_terminal() -> None:
    file = Terminal()
    assert list(inspect.progress(range(3), file=file, ncols=60)) == [0, 1, 2]
    assert "0/3" in file.getvalue() and "\n" not in file.getvalue()
    kept = Terminal()
    assert list(inspect.progress(range(3), file=kept, leave=True, ncols=60)) == [0, 1, 2]
    assert kept.getvalue().endswith("\n") and "3/3" in kept.getvalue()


def test_without_any_output() -> None:
    bar = inspect.progress(range(2), file=None)  # as under pythonw, where sys.stderr is None
    assert list(bar) == [0, 1]


@contextmanager
def terminal_of_40_columns() -> Iterator[Callable[[], list[str]]]:
    """Let both streams be a terminal; yield a function that returns the lines that it shows."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    here, there = pty.openpty()
    termios.tcsetwinsize(there, (24, 40))
    with open(there, "w", 1) as stream, redirect_stdout(stream), redirect_stderr(stream):
        lines, column = [""], 0

        def shown() -> list[str]:
            nonlocal column
            os.write(there, b"\0")
            while (letter := os.read(here, 1)) != b"\0":
                text = letter.decode()
                if text in "\r\n":
                    column, lines[len(lines) :] = 0, [""] * (text == "\n")
                else:
                    lines[-1], column = lines[-1][:column] + text + lines[-1][column + 1 :], column + 1
            return [line.rstrip() for line in lines]

        yield shown
    os.close(here)


def test_a_line_of_a_tool_gives_way_to_what_a_program_prints(monkeypatch: Any) -> None:
    monkeypatch.setattr(terminal.time, "monotonic", itertools.count(1).__next__)
    with terminal_of_40_columns() as screen:
        log = logging.Logger("program")
        log.addHandler(logging.StreamHandler())
        plain = vars(sys.stderr).copy()
        status = terminal.Status()
        status.show("tool: 1 of 3 steps, which take their time " * 2, True)
        assert screen() == ["tool: 1 of 3 steps, which take their"]
        print("loss 0.5")
        status.show("tool: 2 of 3", True)
        assert screen() == ["loss 0.5", "tool: 2 of 3"]
        log.warning("careful")
        print("Go on? ", end="", flush=True)
        status.show("tool: 3 of 3", True)
        assert screen() == ["loss 0.5", "careful", "Go on?"]
        print("yes")
        for k in tqdm(range(2), ncols=30, mininterval=0, ascii=True):
            status.show(f"tool: {k} in between", True)
        assert re.fullmatch(r"100%\|\S+ 2/2 .*", screen()[3])
        status.show("tool: ends", False)
        status.close()
        assert screen()[4:] == [""] and vars(sys.stderr) == plain


def test_no_line_of_a_tool_elsewhere(capsys: Any) -> None:
    status = terminal.Status()
    status.show("tool: 1 step", True)
    status.close()
    assert capsys.readouterr() == ("", "") and not terminal.columns(None)


def test_lines_break_between_words_on_a_terminal() -> None:
    """The notes of errors only when they are shown, and only those of the package."""
    error = RuntimeError("wrong")
    error.__notes__ = [notes.Note("  made at " + "a line " * 9), "theirs " * 9]
    text = "the models part at layer0 (Conv2d): different\n  a/path/that/is/longer/than/the/terminal/is.py:12 is wrong"
    with terminal_of_40_columns() as screen:
        print(terminal.wrapped(text, sys.stdout))
        assert terminal.wrapped(text, io.StringIO()) == text
        notes._noted(error, None)
        assert screen() == [
            "the models part at layer0 (Conv2d):", "different", "  a/path/that/is/longer/than/the/terminal/is.py:12",
            "    is wrong", "",
        ]  # fmt: skip
    assert error.__notes__ == [
        "  made at a line a line a line a line a\n    line a line a line a line a line",
        "theirs " * 9,
    ]
