"""The house keeps its floors: a module imports only from floors below its own, and nothing heavy at import."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tinytorch

PACKAGE = Path(tinytorch.__file__).parent

#: The folders, and modules beside them, in order: each imports only from itself and from those before it.
ORDER = """
    _version _atomic kernels core ops linalg special fft random autograd amp nn func inspect optim data
    serialization distributions testing overrides library multiprocessing distributed compiler utils compat __main__
""".split()


@functools.cache
def modules() -> list[tuple[str, Path]]:
    """Return (dotted name below tinytorch, file) of all modules."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def place(name: str) -> int:
    """Return the place of a module in the order; the package itself, which is lazy, comes last.

    So do the submodules that compat finds, such as `tinytorch.cuda`.
    """
    folder = name.split(".")[0]
    return ORDER.index(folder if folder in ORDER else "compat")


@functools.cache
def imports(path: Path, only_top: bool, only_statements: bool = True) -> list[str]:
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
        if not only_statements and isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            found += [
                each.removeprefix("tinytorch.")
                for each in named
                if str(each).removeprefix("tinytorch.") not in (str(each), "")
            ]
        if isinstance(node, ast.Import):
            found += [
                a.name.removeprefix("tinytorch").removeprefix(".") for a in node.names if a.name.startswith("tinytorch")
            ]
        nodes += list(ast.iter_child_nodes(node))
    return found


def test_names_of_nn_that_distributed_defines_are_imported_when_asked_for() -> None:
    """The one exception to the order is a table: public names of `nn` that are defined in `distributed`."""
    table = importlib.import_module("tinytorch.nn._distributed").DEFINED_IN
    for name, module in table.items():
        assert place(module.removeprefix("tinytorch.")) == ORDER.index("distributed")
        home = tinytorch.nn if hasattr(tinytorch.nn, name) else tinytorch.nn.parallel
        assert name in dir(home) and getattr(home, name) is getattr(sys.modules[module], name, sys.modules[module])
    program = "import sys, tinytorch.nn.parallel; print('tinytorch.distributed' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: str(value) if isinstance(value, str) else "")
def test_imports_follow_the_order(name: str, path: Path) -> None:
    for imported in imports(path, only_top=False, only_statements=False):
        assert place(imported) <= place(name), f"{name or 'tinytorch'} imports {imported}"


def test_every_entry_of_the_root_has_its_place() -> None:
    entries = {name.split(".")[0] for name, _ in modules()} - {""}
    assert entries == {name.split(".")[0] for name in ORDER}
    assert len({path.name for path in PACKAGE.iterdir()} - {"__pycache__"}) <= 30


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: str(value) if isinstance(value, str) else "")
def test_the_package_is_imported_at_the_top_only(name: str, path: Path) -> None:
    hidden = set(imports(path, only_top=False)) - set(imports(path, only_top=True))
    assert not hidden, f"{name} imports {hidden} inside a function"


RECORDER = """
import builtins, importlib, json, pkgutil, sys
edges, plain = set(), builtins.__import__
def record(importer, name):
    parts = name.split(".")
    if parts[0] == "tinytorch" and importer.split(".")[0] == "tinytorch" and len(parts) > 1:
        edges.add((importer, name))
def imported(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if not level:
        record(importer, name)
        for each in fromlist or ():
            if f"{name}.{each}" in sys.modules or name == "tinytorch":
                record(importer, f"{name}.{each}")
    return plain(name, globals, locals, fromlist, level)
builtins.__import__ = imported
import tinytorch
for each in pkgutil.walk_packages([*tinytorch.__path__, tinytorch.compat.FOLDER], "tinytorch."):
    importlib.import_module(each.name)
print(json.dumps(sorted(edges)))
"""


def test_imports_follow_the_order_as_they_run() -> None:
    run = subprocess.run([sys.executable, "-c", RECORDER], capture_output=True, text=True, check=True)
    edges = [(a.partition(".")[2], b.partition(".")[2]) for a, b in json.loads(run.stdout)]
    assert len(edges) > 1000

    wrong = [(a, b) for a, b in edges if place(b) > place(a)]
    assert not wrong


def test_tensor_is_complete_from_the_beginning() -> None:
    program = """
import pkgutil, importlib, tinytorch
before = set(vars(tinytorch.Tensor))
for each in pkgutil.walk_packages([*tinytorch.__path__, tinytorch.compat.FOLDER], "tinytorch."):
    importlib.import_module(each.name)
print(*sorted(set(vars(tinytorch.Tensor)) - before))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not run.stdout.split()


def test_kernels_know_no_tensor() -> None:
    for name, path in modules():
        if name.startswith("kernels"):
            assert not any("core.tensor" in each for each in imports(path, only_top=False)), name


#: What most programs do not need, or ask for by an import of their own.
LATER = """
    amp autograd.forward_ad autograd.function autograd.gradcheck autograd.profiler compiler cuda data distributions fft
    func jit linalg nn optim serialization testing utils
"""


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, tinytorch; print(*sorted(sys.modules))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for heavy in (
        "torch",
        "tqdm",
        "urllib.request",
        "zipfile",
        "PIL",
        "multiprocessing",
        "torchvision",
        "matplotlib",
        *(f"tinytorch.{name}" for name in LATER.split()),
    ):
        assert heavy not in names


def test_public_names_are_sorted_and_there() -> None:
    assert tinytorch.__all__ == sorted(tinytorch.__all__)
    for name in tinytorch.__all__:
        assert hasattr(tinytorch, name), name


def test_the_stub_of_tensor_is_fresh() -> None:
    script = Path(__file__).resolve().parent.parent / "scripts" / "make_stub.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_table_of_names_is_fresh() -> None:
    script = Path(__file__).resolve().parent.parent / "scripts" / "make_names.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
