"""The Python blocks of README.md run as one session, and print the documented output."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import tinytorch
from scripts.website.claims import claims

README = Path(__file__).resolve().parent.parent / "README.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = []
    for block in blocks():
        exec(compile(block, str(README), "exec"), names)
        printed.append(capsys.readouterr().out)
    assert len(printed) == 3
    # The comment after a print is the line that it prints.
    for block, out in zip(blocks(), printed, strict=True):
        for expected in re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE):
            assert expected in out.splitlines()
    accuracy = re.search(r"accuracy ([\d.]+)%", printed[1])
    assert accuracy is not None
    assert float(accuracy[1]) > 95
    assert (tmp_path / "model.pth").exists()


def test_files_it_points_at_exist():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text("utf-8"))
    assert len(targets) >= 4
    folders = (README.parent, Path(tinytorch.__file__).parents[1])  # the wheel is tested without the checkout
    for target in targets:
        assert any((folder / target).exists() for folder in folders), target


def test_what_the_first_pages_state_is_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = [each for each in claims() if each.stated != each.right]
    assert not wrong


def test_commands_name_what_exists():
    text = README.read_text("utf-8")
    for name in set(re.findall(r"python (\S+\.py)", text)):
        assert (README.parent / name).exists()
    for name in set(re.findall(r"python -m (\w+)", text)):
        assert importlib.util.find_spec(name) is not None
    extras = set(re.findall(r"-e '\.\[(.+?)\]'", text))
    offered = tomllib.loads((README.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert extras <= set(offered["optional-dependencies"])
