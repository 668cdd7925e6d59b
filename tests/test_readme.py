"""The README's Python runs, block after block as one session, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def test_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = []
    for block in blocks():
        exec(compile(block, str(README), "exec"), names)
        printed.append(capsys.readouterr().out)
    assert len(printed) == 3
    # What a comment behind a print says is what is printed.
    for block, out in zip(blocks(), printed, strict=True):
        for said in re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE):
            assert said in out.splitlines()
    accuracy = re.search(r"accuracy ([\d.]+)%", printed[1])
    assert accuracy is not None
    assert float(accuracy[1]) > 95
    assert (tmp_path / "model.pth").exists()


def test_files_it_points_at_exist():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text())
    assert len(targets) >= 4
    for target in targets:
        assert (README.parent / target).exists(), target


def test_commands_name_what_exists():
    text = README.read_text()
    assert "python train_fashion_mnist.py" in text
    assert "-m pytest" in text
    assert (README.parent / "benchmarks" / "__main__.py").exists()
