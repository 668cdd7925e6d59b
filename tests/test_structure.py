"""The house keeps its floors: a module imports only from floors below its own, and nothing heavy at import."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import tinytorch

PACKAGE = Path(tinytorch.__file__).parent

#: The floors, lowest first: modules (or packages) of tinytorch by the start of their dotted name.
FLOORS = [
    ("_version", "_atomic", "blas", "dtypes", "device", "layout"),
    ("kernels",),
    ("_tensor", "return_types", "autograd.mode", "autograd.graph", "autograd.view", "autograd.op", "autograd.inplace",
     "autograd.engine", "autograd.function", "autograd.saved", "autograd.anomaly", "autograd.forward_ad",
     "autograd.autocast"),
    ("ops",),
    ("methods", "autograd", "nn", "optim", "data", "serialization", "linalg", "legacy", "func", "special", "cuda",
     "distributions", "absent", "accelerator", "backends", "amp", "compiler", "storage", "switches", "testing",
     "__future__"),
    ("utils", ""),
]  # fmt: skip


@functools.cache
def modules() -> list[tuple[str, Path]]:
    """Return (dotted name below tinytorch, file) of all modules."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def floor(name: str) -> int:
    """Return the floor of a module; the longest entry that fits decides."""
    best, level = -1, -1
    for number, entries in enumerate(FLOORS):
        for entry in entries:
            if (name == entry or name.startswith(f"{entry}.") or entry == "") and len(entry) > best:
                best, level = len(entry), number
    return level


@functools.cache
def imports(path: Path, only_top: bool) -> list[str]:
    """Return the dotted names below tinytorch that a file imports (outside `if TYPE_CHECKING`)."""
    known = {name for name, _ in modules()}
    found = []
    nodes: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if only_top and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tinytorch":
            base = (node.module or "").removeprefix("tinytorch").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                found.append(full if full in known else base)
        if isinstance(node, ast.Import):
            found += [
                a.name.removeprefix("tinytorch").removeprefix(".")
                for a in node.names
                if a.name.startswith("tinytorch")
            ]
        nodes += list(ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize(
    ("name", "path"), modules(), ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_imports_go_down(name: str, path: Path) -> None:
    for imported in imports(path, only_top=False):
        assert floor(imported) <= floor(name), (
            f"{name or 'tinytorch'} (floor {floor(name)}) imports {imported}"
        )


@pytest.mark.parametrize(
    ("name", "path"), modules(), ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_the_package_is_imported_at_the_top_only(name: str, path: Path) -> None:
    hidden = set(imports(path, only_top=False)) - set(imports(path, only_top=True))
    assert not hidden, f"{name} imports {hidden} inside a function"


def test_kernels_know_no_tensor() -> None:
    for name, path in modules():
        if name.startswith("kernels"):
            assert not any("_tensor" in each for each in imports(path, only_top=False)), name


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, tinytorch; print(*sorted(sys.modules))"
    names = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    for heavy in (
        "torch",
        "tqdm",
        "urllib.request",
        "zipfile",
        "PIL",
        "multiprocessing",
        "torchvision",
        "matplotlib",
        *(f"tinytorch.{name}" for name in tinytorch._LATER),
    ):
        assert heavy not in names


def test_what_is_imported_later_is_there() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    (checked,) = (
        node for node in tree.body if isinstance(node, ast.If) and "CHECKING" in ast.unparse(node)
    )
    (known,) = checked.body  # to type checkers
    assert isinstance(known, ast.ImportFrom)
    assert [alias.name for alias in known.names] == list(tinytorch._LATER)
    for name in tinytorch._LATER:
        assert name in dir(tinytorch)
        assert getattr(tinytorch, name).__name__ == f"tinytorch.{name}"


def test_type_checkers_are_told_what_is_public() -> None:
    """A star or a submodule they know to be public; what is imported by its name must stand in a list."""
    by_name, written_out = set(), set()
    for node in ast.parse((PACKAGE / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module != "tinytorch":
            by_name |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            assert ast.unparse(node.targets[0]) == "__all__"
            written_out = set(ast.literal_eval(node.value))
    assert written_out == {name for name in by_name if name[0] not in "*_"}


def test_public_names_are_sorted_and_there() -> None:
    assert tinytorch.__all__ == sorted(tinytorch.__all__)
    for name in tinytorch.__all__:
        assert hasattr(tinytorch, name), name


def test_the_stub_of_tensor_is_fresh() -> None:
    script = Path(__file__).resolve().parent.parent / "scripts" / "make_stub.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
