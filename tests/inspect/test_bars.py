"""A bar on a terminal; one line at the end elsewhere."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from tqdm import tqdm

from tinytorch import inspect


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
