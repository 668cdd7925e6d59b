#!/usr/bin/env python
"""Write the tables of public names, in `tinytorch/__init__.py`, and of Tensor's members, `core/members.txt`, and stubs.

The stubs are `tinytorch/__init__.pyi`, and `tinytorch/ops/faces/*.pyi` for modules that look functions up at run time.

    python scripts/make_names.py            # write them
    python scripts/make_names.py --check    # fail if they are stale

Functions of tensors are collected from their declarations (`ops/register.py`); all other public names are listed here.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from make_stub import function_stub

import tinytorch
from tinytorch import compat
from tinytorch.compat.alias import imported, in_files
from tinytorch.compat.names import elsewhere, names_of, packages, read
from tinytorch.core import supplied
from tinytorch.ops import register

PACKAGE = Path(tinytorch.__file__).parent
ROOT = Path(__file__).resolve().parent.parent

#: By module, the public names that it defines; an empty string stands for the module's `__all__`.
OTHERS: dict[str, str] = {
    "absent": "OutOfMemoryError",
    "alias": "load_ipython_extension",
    "amp": """
        GradScaler autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype
        get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
        set_autocast_enabled set_autocast_gpu_dtype
    """,
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "checks": "",
    "compiler": "_disable_dynamo compile",
    "control": "",
    "core.device": "device",
    "kernels.dtypes": "",
    "core.layout": "",
    "autograd.grad_mode": """
        enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad set_grad_enabled
    """,
    "core.tensor": "",
    "func": "vmap",
    "futures": "Future",
    "inspect.summary": "summary",
    "jit": "ScriptModule",
    "kernels.printing": "set_printoptions",
    "legacy": "",
    "kernels.limits": "",
    "ops.members": "typename",
    "ops.random": "Generator default_generator",
    "ops.rejection": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad",
    "named": "DeviceObjType FloatType TensorType",
    "ops.storage": "",
    "serialization": "PyTorchFileReader load save",
    "sparse.construct": """
        _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo resize_as_sparse_ sparse_bsc_tensor
        sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
        sparse_csr_tensor
    """,
    "sparse.products": "hsmm hspmm saddmm smm sspaddmm",
    "storage": "StorageBase",
    "streams": "",
    "switches": "",
    "version": "__version__",
}

#: The packages that declare functions of tensors.
DECLARING = ("ops", "nn.functional")

#: Modules that look functions up when they are accessed: for these, type checkers read `ops/faces/`.
NAMESPACES = ("fft", "linalg", "nn.functional", "special")

BEGIN, END = "# The tables (scripts/make_names.py writes them).\n", "# End of the tables.\n"
#: The head of the table of Tensor's members.
MEMBERS = """\
# By module below `tinytorch`, the members of Tensor that it declares; `supplied.py` gives them to the class.
# (scripts/make_names.py writes this table.)
"""


def modules(package: str) -> list[Any]:
    """Return a package and all modules in it."""
    found = importlib.import_module(f"tinytorch.{package}")
    names = [each.name for each in pkgutil.walk_packages(found.__path__, f"{found.__name__}.")]
    return [found, *map(importlib.import_module, sorted(names))]


def defined(module: Any) -> Iterator[str]:
    """Yield the names that a module defines itself, without those that it imports."""
    for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        yield from assigned(node)


def homes() -> dict[int, str]:
    """Return the names of the modules that define functions, by the `id` of the function."""
    found: dict[int, str] = {}
    for package in DECLARING:
        for module in modules(package):
            for name in defined(module):
                found.setdefault(id(vars(module)[name]), module.__name__.removeprefix("tinytorch."))
    return found


def members() -> dict[str, list[str]]:
    """Import everything, and return the members of Tensor by the modules that declare them."""
    found: dict[str, set[str]] = {}
    declare = supplied.declare_members

    def noticed(names: dict[str, Any], listed: bool = True, raw: Any = None) -> None:
        declare(names, listed, raw)
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        found.setdefault(frame.f_globals["__name__"].removeprefix("tinytorch."), set()).update(names)

    supplied.declare_members = register.declare_members = noticed
    for package in ("autograd", "ops", "inspect"):
        modules(package)
    supplied.declare_members = register.declare_members = declare
    return {path: sorted(found[path]) for path in sorted(found) if found[path]}


def table() -> dict[str, list[str]]:
    """Return the public names, by the module that defines them."""
    found: dict[str, set[str]] = {}
    for path, names in OTHERS.items():
        listed = names.split() or importlib.import_module(f"tinytorch.{path}").__all__
        found[path] = set(listed)
    home = homes()
    for name, function in register.functions.items():
        if "." not in name and not any(name in listed for listed in found.values()):
            path = home.get(id(function.raw))
            if path is None and (plain := register.functions.get(name.removesuffix("_"))):
                path = home.get(id(plain.raw))  # of the derived in-place form
            path = path or "ops.operators"  # a method of Tensor
            found.setdefault(path, set()).add(name)
    return {path: sorted(found[path]) for path in sorted(found)}


def submodules() -> list[str]:
    """Return the names of the submodules that are accessible as attributes of the package."""
    files = {file.name for file in pkgutil.iter_modules([*tinytorch.__path__, compat.FOLDER])} - {"_version"}
    return sorted(files | {path.split(".")[0] for path in packages()})


def written(table: str, names: dict[str, list[str]]) -> str:
    """Return a table as source text."""
    lines = [f"{table} = {{\n"]
    for path, listed in names.items():
        line = f'    "{path}": "{" ".join(listed)}",\n'
        if len(line) > 121:
            body = textwrap.fill(" ".join(listed), 116, initial_indent=" " * 8, subsequent_indent=" " * 8)
            line = f'    "{path}": """\n{body}\n    """,\n'
        lines.append(line)
    return "".join(lines) + "}\n"


def written_names(table: str, names: list[str]) -> str:
    """Return a string of names as source text."""
    body = textwrap.fill(" ".join(names), 116, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return f'{table} = """\n{body}\n"""\n'


def row(path: str, names: list[str]) -> str:
    """Return the lines of a module in the table of Tensor's members."""
    return textwrap.fill(f"{path}: {' '.join(names)}", 120, subsequent_indent=" " * 4, break_on_hyphens=False) + "\n"


def stub(names: dict[str, list[str]], submodules: list[str]) -> str:
    """Return the text of the package's stub, for editors and type checkers."""
    lines, others = ([], ["e: builtins.float", "inf: builtins.float", "nan: builtins.float", "pi: builtins.float"])
    others += ["newaxis: None", "_HIDDEN: frozenset[str]"]
    functions: list[str] = []
    for path, listed in names.items():
        module = importlib.import_module(f"tinytorch.{path}")
        for name in listed:
            function = register.functions.get(name)
            if function is not None and not is_typed(function):
                functions.append(function_stub(function, name, name))
            elif name in elsewhere(path):
                home, _, old = elsewhere(path)[name].rpartition(".")
                lines.append(imported(in_files(home), old, name))
            elif hasattr(module, name) and path != "named":
                lines.append(f"from {in_files(read().equal.get(path, path))} import {name} as {name}")
            elif own := [key for key, value in vars(module).items() if function and value is function.raw]:
                lines.append(imported(in_files(path), own[0], name))
            else:
                others.insert(0, f"{name}: Any")
    for name in submodules:
        if name in tinytorch._HIDDEN or name in ("__future__", "__main__"):
            continue
        homes = {home.rpartition(".")[0] for home in elsewhere(name).values()}
        alone = len(homes) == 1 and "" not in homes and elsewhere(name).keys() == names_of(f"tinytorch.{name}").keys()
        home = homes.pop() if alone else read().equal.get(name, name)  # of another name of a module, or as good as that
        if importlib.util.find_spec(f"tinytorch.{home}").origin:
            where, _, own = in_files(home).rpartition(".")
            lines.append(imported(where, own, name))
        else:  # of the table alone
            others.insert(0, f"{name}: Any")
    return "\n".join([*HEAD, *lines, "", *others, *functions, ""])


HEAD = [
    "# Generated by scripts/make_names.py: do not edit.", "import builtins", "from typing import Any, overload", "",
    "from tinytorch.ops import return_types as _return_types",
]  # fmt: skip


@functools.cache
def definitions(file: str) -> dict[int, ast.FunctionDef]:
    """Return the functions that a file defines, by their first lines."""
    tree = ast.parse(Path(file).read_text("utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *[each.lineno for each in node.decorator_list]]): node for node in found}


def is_typed(function: Any) -> bool:
    """Return whether type checkers know from the source what a function takes and returns."""
    raw = inspect.unwrap(function.raw)
    if not inspect.isfunction(raw) or not Path(raw.__code__.co_filename).exists():
        return False
    node = definitions(raw.__code__.co_filename).get(raw.__code__.co_firstlineno)
    if node is None or node.name != function.raw.__name__ or not node.returns or "Any" in ast.unparse(node.returns):
        return False
    return all(
        ast.unparse(each).partition("(")[0] in ("public", "traced_as", "short", "alike") for each in node.decorator_list
    )


def namespace_stub(namespace: str) -> str:
    """Return the text of the stub of a namespace, such as `linalg`, whose functions have dotted public names."""
    home, found, functions = homes(), [], []
    for name in importlib.import_module(f"tinytorch.{namespace}").__all__:
        function = register.functions.get(f"{namespace}.{name}")
        if function is None:
            continue  # the namespace imports this name
        if not is_typed(function):
            functions.append(function_stub(function, name, f"{namespace}.{name}".replace(".", "_")))
            continue
        path = home.get(id(function.raw), "nn.functional.activation")  # (which has the name of a derived one, `relu_`)
        members = vars(sys.modules[f"tinytorch.{path}"])
        own = next((key for key, value in members.items() if value is function.raw), name)
        found.append(imported(f"tinytorch.{path}", own, name))
    return "\n".join([*HEAD, "from tinytorch.core.tensor import Size, Tensor", *sorted(found), "", *functions, ""])


def located(text: str) -> str:
    """Return a document with up-to-date line numbers in references such as "`core/engine.py:24` `walk`"."""

    def line(match: re.Match[str]) -> str:
        path, name = match.groups()
        nodes: list[ast.AST] = [ast.parse((PACKAGE / path).read_text("utf-8"))]
        for part in name.split("."):
            inner = [each for node in nodes for each in ast.iter_child_nodes(node)]
            nodes = [each for each in inner if part in (getattr(each, "name", ""), *assigned(each))]
        return f"`{path}:{nodes[0].lineno}` `{name}`"

    return re.sub(r"`([\w/]+\.py):\d+` `([\w.]+)`", line, text)


def assigned(node: ast.AST) -> list[str]:
    """Return the names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


if __name__ == "__main__":
    bound = members()  # first, since it observes only modules that are not imported yet
    names, below = table(), submodules()
    path = PACKAGE / "__init__.py"
    source = path.read_text("utf-8")
    start, end = source.index(BEGIN) + len(BEGIN), source.index(END)
    tables = written("_NAMES", names) + written_names("_SUBMODULES", below)
    texts = {path: source[:start] + tables + source[end:], path.with_suffix(".pyi"): stub(names, below)}
    texts[PACKAGE / "core" / "members.txt"] = MEMBERS + "".join(map(row, bound, bound.values()))
    texts |= {document: located(document.read_text("utf-8")) for document in [ROOT / "ARCHITECTURE.md"]}
    texts |= {PACKAGE / "ops" / "faces" / f"{each.rpartition('.')[2]}.pyi": namespace_stub(each) for each in NAMESPACES}
    stale = [each.name for each, text in texts.items() if not each.exists() or each.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"run scripts/make_names.py: stale are {', '.join(stale)}" if stale else 0)
    for each, text in texts.items():
        each.write_text(text)
