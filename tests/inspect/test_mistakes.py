"""docs/mistakes.md is up to date, the corrected programs run, and the notes name what the page says."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.oracle import needs_oracle


def _script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "scripts" / "make_mistakes.py"
    spec = importlib.util.spec_from_file_location("make_mistakes", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_mistakes"] = module
    spec.loader.exec_module(module)
    return module


script = _script()
PROGRAMS = list(script.programs())
TEXT = script.PAGE.read_text("utf-8")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name.removesuffix(".py"))
def test_a_program(program) -> None:
    found = script.ours(program)
    assert script.end_of(found.text) in TEXT, "run scripts/make_mistakes.py"
    assert program.right and script.run(program, "tinytorch", corrected=True) is None
    # A note that names a remedy names one that was tried.
    named = re.findall(r"^ *remedy(?: at \S+)?: (.*)$", found.text, re.MULTILINE)
    assert all(script.is_right(each, program) for each in named)


def test_the_shares() -> None:
    assert len(PROGRAMS) >= 427
    pairs = [(program, script.ours(program)) for program in PROGRAMS]
    found, whole = script.counted(pairs), script.whole(PROGRAMS)
    assert found.errors == whole.errors
    for title, name in script.ROWS:
        share = getattr(found, name) / getattr(whole, name)
        assert share >= 0.85
        assert f"| {title} | {getattr(whole, name)} | {getattr(found, name)} ({share:.0%}) |" in TEXT


@needs_oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name.removesuffix(".py"))
def test_pytorch_raises_the_same_class(program) -> None:
    if program.name == "compiled_model.py":
        return  # PyTorch's compiler has an error class of its own
    error = script.run(program, "torch")
    assert error is not None
    assert type(error).__name__ == script.ours(program).kind
