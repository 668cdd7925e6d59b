"""Whether there are native kernels, and why not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tinytorch.kernels import native

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def script() -> Any:
    path = ROOT / "scripts" / "build_native.py"
    if not path.exists():
        pytest.skip("this is not a checkout")
    spec = importlib.util.spec_from_file_location("build_native", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_why_a_build_fails(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    assert script.failure(OSError("x")) == "no C compiler was found (no-such-compiler)"
    monkeypatch.setenv("CC", sys.executable)
    assert script.failure(RuntimeError("of\nall")) == "building them failed: of all"
    monkeypatch.setenv("TINYTORCH_NATIVE", "0")
    assert not script.wanted() and script.unwanted() == "it was built with TINYTORCH_NATIVE=0"


def test_a_library_is_built_once(script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / script.FOLDER
    folder.mkdir(parents=True)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    (folder / "module.c").write_text("int one;")
    library = folder / "_native.abi3.so"
    library.write_bytes(b"code " + script.digest([]).encode() + b" more code")
    assert script.existing() == library
    (folder / "module.c").write_text("int two;")
    assert script.existing() is None
    library.write_bytes(script.digest(["-g"]).encode())
    assert script.existing() is None


class App:
    """What hatchling shows messages by."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.display_warning = self.display_info = self.shown.append


def test_the_hook_notes_the_reason(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINYTORCH_NATIVE", raising=False)
    monkeypatch.setenv("CC", "no-such-compiler")

    def failing(into: Path, flags: list[str]) -> Path:
        raise OSError("command not found")

    monkeypatch.setattr(script, "build", failing)
    monkeypatch.setattr(script, "wanted", lambda: True)
    hook = object.__new__(type("Hook", (script.NativeBuildHook,), {"target_name": "wheel", "app": App()}))
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    ((source, target),) = data["force_include"].items()
    assert target == "tinytorch/kernels/native/not_built.txt"
    assert Path(source).read_text("utf-8") == "no C compiler was found (no-such-compiler)\n"
    assert "no C compiler was found" in hook.app.shown[0]
    hook.finalize("standard", data, "")
    assert not Path(source).exists()


def test_the_configuration_says_why_there_are_none() -> None:
    environment = {**os.environ, "TINYTORCH_NATIVE": "0"}
    program = "import tinytorch; print(tinytorch.__config__.show())"
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "native kernels: none (disabled by TINYTORCH_NATIVE=0)" in run.stdout


def test_reasons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "_library", None)
    monkeypatch.setattr(native, "_failure", ImportError("symbol not found"))
    monkeypatch.setattr(native, "__file__", str(tmp_path / "__init__.py"))
    assert native.absence() == "the library has not been built"
    (tmp_path / "_native.abi3.so").touch()
    assert native.absence() == "the library cannot be loaded: symbol not found"
    (tmp_path / "not_built.txt").write_text("no C compiler was found (cc)\n")
    assert native.absence() == "no C compiler was found (cc)"
    monkeypatch.setattr(native, "_library", object())
    assert native.absence() is None
    assert tinytorch.__config__.show().startswith("tinytorch ")
