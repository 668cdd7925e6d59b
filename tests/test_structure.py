"""The rules of the structure: order of imports, no circles, a fact stands once, nothing is patched."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tinytorch
from tests import declared
from tests.declared import registered
from tinytorch.compiler.saved import home_of
from tinytorch.core.supplied import HOMES
from tinytorch.ops.register import functions

PACKAGE = Path(tinytorch.__file__).parent

#: The folders, and modules beside them, in order: each imports only from itself and from those before it.
ORDER = """
    _version _atomic kernels core ops linalg special fft random sparse quasirandom signal autograd amp nn masked func
    optim data serialization inspect distributions testing overrides library multiprocessing distributed compiler utils
    fx compat __main__
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
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def last_name(node: ast.AST) -> str:
    """Return the name, or the last part of the dotted name, that an expression is."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


class Import(NamedTuple):
    """A dotted name below tinytorch that a file imports, in a function or at the top, by a statement or a call."""

    name: str
    at_the_top: bool
    by_a_statement: bool


@functools.cache
def imports(path: Path) -> list[Import]:
    """Return what a file imports (outside `if TYPE_CHECKING`)."""
    known = {name for name, _ in modules()}
    calls = "import_module" in path.read_text("utf-8")
    inside = (ast.AST,) if calls else (ast.stmt, ast.ExceptHandler, ast.match_case)  # expressions only where need be
    found = []
    nodes: list[tuple[ast.AST, bool]] = [(parsed(path), True)]
    while nodes:
        node, top = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        top = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "tinytorch"):
            above = path.relative_to(PACKAGE).parts[: -node.level] if node.level else ()
            base = ".".join([*above, (node.module or "").removeprefix("tinytorch").removeprefix(".")]).strip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                found.append(Import(full if full in known else base, top, True))
        if isinstance(node, ast.Call) and last_name(node.func) == "import_module":
            named = [str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)]
            below = [each.removeprefix("tinytorch.") for each in named if each.startswith("tinytorch.")]
            found += [Import(each, top, False) for each in below if each]
        if isinstance(node, ast.Import):
            named = [each.name for each in node.names if each.name.startswith("tinytorch")]
            found += [Import(each.removeprefix("tinytorch").removeprefix("."), top, True) for each in named]
        nodes += [(each, top) for each in ast.iter_child_nodes(node) if isinstance(each, inside)]
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


def test_imports_follow_the_order() -> None:
    late = [
        f"{name or 'tinytorch'} imports {each.name}"
        for name, path in modules()
        for each in imports(path)
        if place(each.name) > place(name)
    ]
    assert not late


def test_every_entry_of_the_root_has_its_place() -> None:
    entries = {name.split(".")[0] for name, _ in modules()} - {""}
    assert entries == {name.split(".")[0] for name in ORDER}
    assert len({path.name for path in PACKAGE.iterdir()} - {"__pycache__"}) <= 35


def test_the_package_is_imported_at_the_top_only() -> None:
    hidden = {}
    for name, path in modules():
        statements = [each for each in imports(path) if each.by_a_statement]
        hidden[name] = {each.name for each in statements} - {each.name for each in statements if each.at_the_top}
    assert not any(hidden.values()), {name: found for name, found in hidden.items() if found}


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
            assert not any("core.tensor" in each.name for each in imports(path)), name


#: What most programs do not need, or ask for by an import of their own.
LATER = """
    amp autograd.forward_ad autograd.function autograd.gradcheck autograd.profiler compiler cuda data distributions fft
    func jit linalg nn optim serialization testing utils
"""


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, tinytorch; print(*sorted(sys.modules))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    never = "torch tqdm urllib.request zipfile PIL multiprocessing torchvision matplotlib".split()
    assert not {*never, *(f"tinytorch.{name}" for name in LATER.split())}.intersection(names)


def test_public_names_are_sorted_and_there() -> None:
    assert tinytorch.__all__ == sorted(tinytorch.__all__)
    for name in tinytorch.__all__:
        assert hasattr(tinytorch, name), name


@pytest.mark.parametrize("script", ["make_names.py", "make_stub.py"])
def test_generated_files_are_fresh(script: str) -> None:
    run = subprocess.run([sys.executable, ROOT / "scripts" / script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# The tree ------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent

#: Paths that every system like Unix has, or the one that a message or an example is about.
ABSOLUTE = re.compile(r"/(usr/bin/env|dev/(null|full|stdout|fd)|proc/|sys/fs/cgroup|home/me/|usr/share/keyrings/)")


def test_no_folder_has_more_lines_than_it_may() -> None:
    ran = subprocess.run([sys.executable, str(ROOT / "scripts" / "count_lines")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_no_file_names_a_path_of_one_machine() -> None:
    places = "tmp|home|root|work|opt|usr|var|mnt|srv|etc|Users|dev|proc|sys|private|scratch"
    path = re.compile(rf"(?<![\w.:/<*)}}~$-])/(?:{places})/\w[\w./-]*")
    found = []
    for file in files_of_the_tree():
        text = file.read_text("utf-8", errors="ignore")
        named = [each for each in path.findall(text) if not ABSOLUTE.match(each)]
        found += [f"{file.relative_to(ROOT)}: {each}" for each in named]
    assert not found


def files_of_the_tree() -> list[Path]:
    """Return the text files of the repository; outside of one, those of the folders that an archive of it has."""
    run = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = run.stdout.splitlines() if (ROOT / ".git").exists() else []
    files = [ROOT / name for name in names] or [
        path for folder in ("tests", "examples", "benchmarks", "docs", "scripts") for path in (ROOT / folder).rglob("*")
    ]
    return [
        path for path in files if path.suffix in (".py", ".md", ".sh", ".toml", ".yml", ".txt", "") and path.is_file()
    ]


# A fact stands once -------------------------------------------------------------------------------

#: Collections at the level of a module that may hold names of ops, with the reason.
MAY_LIST_OPS = {
    "__init__._NAMES": "generated: which module has which public name",
    "amp.autocast_mode._AVAILABLE": "kinds of devices",
    "autograd.functional._JVP": "text of error messages",
    "autograd.functional._HVP": "text of error messages",
    "autograd.profiler._NAMES": "appearance: names of rows in PyTorch's profiler",
    "compat": "names of PyTorch that programs ask for",
    "compiler.tracing._TENSOR_ATTRIBUTES": "attributes of Tensor, which are no ops",
    "core.device._KINDS": "kinds of devices",
    "masked._IDENTITIES": "the number that changes no result of a function of `torch.masked`",
    "fx._codegen": "operators of Python",
    "fx._names._IN_GRAPHS": "appearance: the names that functions have in PyTorch's graphs",
    "ops.left_out.NAMES": "generated: names that tinytorch does not have",
    "inspect.doctor.checks.facts": "what ops do to the values of data, which no declaration says",
    "inspect.doctor.checks.losses": "what goes wrong before a loss, which no declaration says",
    "inspect.doctor.limits.LIMITS": "words of sentences",
    "inspect.doctor.trace._UPDATES": "what a step that a program takes itself may call",
    "inspect.doctor.trace._PRODUCTS": "by what a program may apply its first weights itself",
    "inspect.doctor.checks.parameters._HARD": "which results programs use as if they had a derivative",
    "inspect.doctor.checks.numbers._CAUSES": "what ops do to the values of data, which no declaration says",
    "inspect.doctor.patches": "where the results of ops are finite, which no declaration says",
    "inspect.why": "which calls in the source of a program may cut a gradient off",
    "inspect.summary._MULTIPLY_ADDS": "how the summary counts the multiplications of products",
    "kernels.dtypes.C_NAMES": "names of dtypes",
    "kernels.indexing._REDUCTIONS": "values of an argument",
    "kernels.printing._PROFILES": "values of an argument",
    "compiler.calls._READING_METHODS": "methods of Python's containers",
    "inspect.mistakes.rows._ELSEWHERE": "names of arguments",
    "inspect.mistakes.rows.TEMPLATES": "messages, and the code that puts them right",
    "inspect.mistakes.running._BINARY": "functions of Python",
    "inspect.mistakes.trial._BUILTINS": "functions of Python",
    "inspect.mistakes.trial._OF_NUMPY": "functions of NumPy",
    "inspect.mistakes.trial._ARRAYS": "methods of NumPy",
    "inspect.mistakes.trial._OF_PROCESS": "what is not to be run while a remedy is tried",
    "inspect.mistakes.failure._NAMES": "operators of Python",
    "inspect.mistakes.edits._METHODS": "names of dtypes",
    "inspect.mistakes.edits._FAMILY": "which functions do the same for other arguments",
    "nn.init._LINEAR": "values of an argument",
    "nn.init._GAINS": "values of an argument",
    "nn.parameter._ALLOWED": "appearance: the members that PyTorch lets an uninitialized parameter have",
    "nn.parameter._OPERATORS": "appearance: the operators that PyTorch refuses to an uninitialized parameter",
    "kernels.limits._C_NAMES": "names of dtypes",
    "ops.nn.embedding._MODES": "values of an argument",
    "ops.operators._div_rounded": "values of an argument",
    "ops.out.RULES": "the rules that declarations name; a rule of one function has its name",
    "ops.overrides._NAMES": "appearance: the names of operators in PyTorch's __torch_function__",
    "ops.overrides._CALLED": "appearance: the names of operators in PyTorch's __torch_function__",
    "ops.overrides._BINARY": "operators of Python",
    "ops.overrides._SILENT": "appearance: members that PyTorch's __torch_function__ is not called for",
    "ops.overrides._ASKING": "appearance: private members that PyTorch's __torch_function__ is called for",
    "sparse.tensors._KEPT": "which members of Tensor sparse tensors have as they are",
    "ops.scatter._SCATTER_REDUCTIONS": "values of an argument",
    "ops.scatter._INDEX_REDUCTIONS": "values of an argument",
}


def words_of(node: ast.AST) -> set[str]:
    """Return the words in the strings of an expression."""
    strings = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return {word for text in strings for word in text.replace(",", " ").split()}


def collections_of(path: Path) -> list[tuple[str, ast.expr]]:
    """Return the names and values of the collections that a module assigns at its level, its `__all__` apart."""
    found = []
    for statement in parsed(path).body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Tuple):  # rows that are declarations themselves
            continue
        value = statement.value
        makes = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2]
        if makes in ("split", "frozenset", "set", "dict", "fromkeys", "sorted", "tuple", "list") or (
            not makes and any(isinstance(each, (ast.Set, ast.Dict, ast.List, ast.Tuple)) for each in ast.walk(value))
        ):
            found.append((ast.unparse(target), value))
    return [(name, value) for name, value in found if name != "__all__"]


def test_no_module_lists_ops_beside_their_declarations() -> None:
    assert declared.FUNCTIONS  # (all modules that declare ops are imported)
    ops = {name.rpartition(".")[2] for name in functions} | set(functions) | set(HOMES)
    found = {}
    for module, path in modules():
        for name, value in collections_of(path):
            listed = words_of(value) & ops
            if len(listed) >= 3:
                found[f"{module or '__init__'}.{name}"] = sorted(listed)
    excepted = tuple(MAY_LIST_OPS)
    wrong = {name: listed for name, listed in found.items() if not name.startswith(excepted)}
    assert not wrong, "say these facts in the declarations of the ops"
    stale = [name for name in excepted if not any(each.startswith(name) for each in found)]
    assert not stale, "take these out of MAY_LIST_OPS"


# Nothing is patched -------------------------------------------------------------------------------


def test_no_code_object_cell_or_globals_is_written_to() -> None:
    for name, path in modules():
        for node in ast.walk(parsed(path)):
            for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
                for part in ast.walk(target) if isinstance(target, ast.AST) else ():
                    of_function = isinstance(part, ast.Attribute) and part.attr in ("__code__", "cell_contents")
                    of_globals = isinstance(part, ast.Subscript) and last_name(part.value) == "__globals__"
                    assert not of_function and not of_globals, f"{name}: {ast.unparse(node)}"


def test_no_module_assigns_into_another_one_at_import() -> None:
    for name, path in modules():
        if name == "ops.register":  # the one registry: it gives Tensor its members
            continue
        body = parsed(path).body
        imported = {
            alias.asname or alias.name for each in body if isinstance(each, ast.ImportFrom) for alias in each.names
        }
        statements = list(body)
        while statements:
            statement = statements.pop()
            if isinstance(statement, (ast.If, ast.For, ast.With, ast.Try)):
                statements += statement.body
            for target in getattr(statement, "targets", None) or [getattr(statement, "target", None)]:
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    root = ast.unparse(target).partition(".")[0].partition("[")[0]
                    assert root not in imported, f"{name}: {ast.unparse(statement)}"
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "setattr":
                assert ast.unparse(call.args[0]) not in imported, f"{name}: {ast.unparse(statement)}"


def test_the_modules_of_a_folder_import_each_other_in_no_circle() -> None:
    edges: dict[str, dict[str, set[str]]] = {}
    for name, path in modules():
        folder = name.partition(".")[0]
        found = {each.name for each in imports(path) if each.by_a_statement}
        imported = {each for each in found if each.startswith(f"{folder}.") and each != name}
        edges.setdefault(folder, {})[name] = imported
    for folder in edges:
        TopologicalSorter(edges[folder]).prepare()  # raises CycleError


def addressable(kernel: object) -> bool:
    """Return whether a saved program can import a kernel: from NumPy, or from a module of `kernels/`."""
    if isinstance(kernel, functools.partial):
        return addressable(kernel.func) and all(not callable(x) or addressable(x) for x in kernel.args)
    module = getattr(kernel, "__module__", None) or getattr(type(getattr(kernel, "__self__", None)), "__module__", "")
    return isinstance(kernel, np.ufunc) or module.startswith("numpy") or home_of(kernel) is not None


def test_every_kernel_is_a_function_of_numpy_or_of_kernels() -> None:
    assert declared.FUNCTIONS
    own = [op for op in registered() if (getattr(op.kernel, "__module__", None) or "").partition(".")[0] != "tests"]
    assert len(own) > 400
    assert not sorted(op.name for op in own if not addressable(op.kernel))
