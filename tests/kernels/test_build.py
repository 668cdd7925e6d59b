"""Whether there are native kernels, and why not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
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
    assert not script.wanted() and script.unwanted() == "omitted by TINYTORCH_NATIVE=0"


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


@pytest.mark.parametrize("version", ["editable", "standard"])
def test_a_library_that_is_there_needs_no_compiler(
    version: str, script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / script.FOLDER
    folder.mkdir(parents=True)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "wanted", lambda: True)
    hook = hook_of(script)
    assert hook.dependencies() == ["setuptools>=77", "numpy>=2.1"]
    (folder / "_native.abi3.so").write_bytes(script.digest([]).encode())
    assert hook.dependencies() == []
    (folder / "build.txt").write_text("built some day by some compiler\n")
    for _ in range(2):
        data: dict[str, Any] = {"force_include": {}}
        hook.initialize(version, data)
        assert hook.app.shown[-1] == "with native kernels: reused, built some day by some compiler"
        names = [Path(target).name for target in data["force_include"].values()]
        assert names == ([] if version == "editable" else ["build.txt", "_native.abi3.so"])
        hook.finalize(version, data, "")


def test_the_note_of_a_build(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setenv("CC", f"{sys.executable}")
    assert script.built().startswith("built 1970-01-01 00:00 UTC by Python 3.")
    assert "-O3" in script.built()


class App:
    """What hatchling shows messages by."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.display_warning = self.display_info = self.shown.append


def hook_of(script: Any) -> Any:
    return object.__new__(type("Hook", (script.NativeBuildHook,), {"target_name": "wheel", "app": App()}))


def test_the_hook_notes_the_reason(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINYTORCH_NATIVE", raising=False)
    monkeypatch.setenv("CC", "no-such-compiler")

    def failing(into: Path, flags: list[str]) -> Path:
        raise OSError("command not found")

    monkeypatch.setattr(script, "build", failing)
    monkeypatch.setattr(script, "wanted", lambda: True)
    hook = hook_of(script)
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    ((source, target),) = data["force_include"].items()
    assert target == "tinytorch/kernels/native/build.txt"
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
    (tmp_path / "build.txt").write_text("built elsewhere\n")
    assert native.absence() == "the library has not been built"
    (tmp_path / "build.txt").write_text("no C compiler was found (cc)\n")
    assert native.absence() == "no C compiler was found (cc)"
    (tmp_path / "_native.abi3.so").touch()
    assert native.absence() == "the library cannot be loaded: symbol not found"
    monkeypatch.setattr(native, "_library", object())
    assert native.absence() is None
    assert tinytorch.__config__.show().startswith("tinytorch ")


@pytest.mark.parametrize(("native_", "lines"), [("", 1), ("0", 0)])
def test_one_line_says_that_there_are_none(native_: str, lines: int) -> None:
    program = """
        import sys
        class Refuses:
            def find_spec(self, name, path=None, target=None):
                if name == "tinytorch.kernels.native._native":
                    raise ImportError("it is not there")
        sys.meta_path.insert(0, Refuses())
        import tinytorch
        tinytorch.ones(2).exp()
    """
    environment = {**os.environ, "TINYTORCH_NATIVE": native_}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stderr.count("NumPy computes all, which takes longer: no native kernels, ") == lines
    assert len(run.stderr.splitlines()) == lines
