"""The script that lists the PyTorch names that packages use: which names count, and its output."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import needs_oracle

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "imported_names.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("imported_names", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCES = {
    "import torch.nn": {"torch.nn"},
    "import torch\ntorch.a.b(torch.c)[0].d": {"torch", "torch.a.b", "torch.c"},
    "import torch.nn.functional as F\nF.gelu(x)": {"torch.nn.functional", "torch.nn.functional.gelu"},
    "from torch import nn\nclass A(nn.Module): pass": {"torch.nn", "torch.nn.Module"},
    "from torch.nn import functional as G\nG.relu(1).shape": {"torch.nn.functional", "torch.nn.functional.relu"},
    "from torch.fft import *": {"torch.fft"},
    "from .torch import x\nimport numpy as torch\nother.torch.y": set(),
    "try:\n    from torch import a\nexcept ImportError:\n    from torch import b": {"torch.b"},
    "try:\n    from torch import a\nexcept (AttributeError, KeyError):\n    pass\nelse:\n    a.c": {"torch.a.c"},
    "try:\n    from torch import a\nexcept ValueError:\n    pass": {"torch.a"},
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import a\nelse:\n    a.b": {"torch.a.b"},
    "import torch\nif hasattr(torch, 'a'):\n    torch.a()\nelse:\n    torch.b()\ntorch.c()": {"torch", "torch.c"},
    "from functorch import vmap": {"functorch.vmap"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_asked_for(script: Any, source: str) -> None:
    assert script.UsedNames(ast.parse(source)).names == SOURCES[source]


def package(folder: Path, name: str, source: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(source, "utf-8")
    (folder / f"{name}-1.5.dist-info").mkdir()
    (folder / f"{name}-1.5.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (folder / f"{name}-1.5.dist-info" / "RECORD").write_text(f"{name}/__init__.py,,\n")
    return folder / name


@needs_oracle
def test_what_is_missing_is_printed(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "first", "import torch\ntorch.add, torch.not_there, torch.hash_tensor, torch.float32.itemsize")
    package(tmp_path, "second", "from torch import hash_tensor, nn\nnn.Linear.forward")
    package(tmp_path, "third", "import numpy")
    monkeypatch.setattr(script, "has", lambda name, library, had=script.has: had(name, library) and (
        library == "torch" or "hash_tensor" not in name))  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["imported_names", str(tmp_path)])
    script.main()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["2", "torch.hash_tensor", "first", "second"]
    assert printed[1:] == ["first 1.5: 3 names, 1 missing. ", "second 1.5: 3 names, 1 missing. "]

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- part packages -->\n\n<!-- end of packages -->\nafter")
    monkeypatch.setattr(script, "TABLE", page)
    monkeypatch.setattr(script, "NAMES", tmp_path / "names.txt")
    monkeypatch.setattr(sys, "argv", ["imported_names", "--table", str(tmp_path)])
    script.main()
    assert "| second 1.5 | 3 | 1 | `hash_tensor` |" in page.read_text("utf-8").partition("after")[0]
    expected = "torch: add float32 nn\ntorch.nn.Linear: forward\n"
    assert (tmp_path / "names.txt").read_text("utf-8") == expected


def test_how_a_module_imports(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.py").write_text("import torch.nn\nassert 'tinytorch' in torch.nn.__file__\n")
    (tmp_path / "bad.py").write_text("import torch\ntorch.no_such_name\n")
    (tmp_path / "poor.py").write_text("import no_such_package.part\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(script.ROOT)}")
    assert script.imported("good") == "yes"
    assert script.imported("bad").startswith("no: AttributeError")
    assert script.imported("poor") == "not tried: no_such_package is not installed"
