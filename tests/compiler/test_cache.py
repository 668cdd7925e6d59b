"""Code that is kept between processes (`TINYTORCH_COMPILE_CACHE`)."""

from __future__ import annotations

import importlib.util
import linecache
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinytorch as torch
from tinytorch.compiler import cache, rewriting

TEXT = """
import tinytorch as torch

def function(x):
    def inner(y):
        return y * FACTOR
    return inner(x).sin() + x.shape[0]
"""
SCRIPT = """
import sys
import tinytorch as torch
from tinytorch.compiler import cache, rewriting

made = []
plain = rewriting._rewritten
rewriting._rewritten = lambda code, name: made.append(name) or plain(code, name)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
for p in model.parameters():
    torch.nn.init.constant_(p, 0.25)
compiled = torch.compile(model)
for _ in range(3):
    y = compiled(torch.ones(3, 4, requires_grad=True))
    y.sum().backward()
assert compiled._compiled.variants[0].runs == 2
print(y.tolist(), len(made))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    rewriting.rewritten.cache_clear()
    return tmp_path / "cache"


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def function_of(path: Path, text: str) -> Any:
    """Return the function of a module with the given text, as a new process would import it."""
    path.write_text(text)
    linecache.cache.pop(str(path), None)
    rewriting.rewritten.cache_clear()
    spec: Any = importlib.util.spec_from_file_location("kept", path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module.function


def numbers(function: Any) -> list[float]:
    compiled = torch.compile(function)
    for _ in range(3):
        found = compiled(torch.ones(2))
    assert compiled.variants[0].runs == 2
    return found.tolist()


def test_a_second_time_nothing_is_rewritten(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("FACTOR", "2.0")
    first = numbers(function_of(tmp_path / "kept.py", text))
    count = len(files(folder))
    assert count >= 4  # two functions, the guards, and the program

    def refuse(*_: Any) -> Any:
        raise AssertionError("a function is rewritten once more")

    monkeypatch.setattr(rewriting, "_rewritten", refuse)
    assert numbers(function_of(tmp_path / "kept.py", text)) == first
    assert len(files(folder)) == count


def test_a_function_that_has_changed(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "kept.py"
    for factor in (2.0, 3.0, 2.0):
        expected = (torch.ones(2) * factor).sin() + 2
        assert numbers(function_of(path, TEXT.replace("FACTOR", str(factor)))) == expected.tolist()


def test_damaged_files_are_made_anew(folder: Path, tmp_path: Path) -> None:
    text = TEXT.replace("FACTOR", "2.0")
    first = numbers(function_of(tmp_path / "kept.py", text))
    before = {path: path.read_bytes() for path in files(folder)}
    for k, path in enumerate(before):
        content = before[path]
        damaged = [b"", content[:-3], content[:40] + b"?" + content[41:], content[:32], b"x" * 100][k % 5]
        path.write_bytes(damaged)
    assert numbers(function_of(tmp_path / "kept.py", text)) == first
    assert set(files(folder)) == set(before)
    assert all(cache._read(path) is not None for path in before)


def test_another_compiler_reads_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("FACTOR", "2.0")
    numbers(function_of(tmp_path / "kept.py", text))
    before = set(files(folder))
    monkeypatch.setattr(cache, "_digest_of_compiler", lambda: b"another")
    numbers(function_of(tmp_path / "kept.py", text))
    assert set(files(folder)) > before


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    with caplog.at_level(logging.WARNING):
        assert numbers(function_of(tmp_path / "kept.py", TEXT.replace("FACTOR", "2.0")))
    assert [record.getMessage() for record in caplog.records if "nothing is kept in" in record.getMessage()]
    assert len(caplog.records) == 1


def test_processes_at_the_same_time(folder: Path) -> None:
    environment = {**os.environ, cache.VARIABLE: str(folder)}

    def start() -> Any:
        return subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment)

    together = [process.communicate()[0] for process in [start(), start(), start()]]
    later = start().communicate()[0]
    assert {line.rpartition(" ")[0] for line in (*together, later)} == {together[0].rpartition(" ")[0]}
    assert later.split()[-1] == "0" and together[0].split()[-1] != "" and later.startswith("[[")
    assert all(cache._read(path) is not None for path in files(folder))
    assert not [path for path in files(folder) if path.name.startswith(".")]
