"""Write the table of `tinytorch/__init__.py`, which public name is in which module, and `tinytorch/__init__.pyi`.

    python scripts/make_names.py            # write them
    python scripts/make_names.py --check    # fail if they are stale

Functions of tensors are found where they are declared (`ops/register.py`); what else is public is listed here.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinytorch.ops import register

PACKAGE = Path(__file__).resolve().parent.parent / "tinytorch"

#: Modules all of whose `__all__` is public, and others with the names that are.
OTHERS: dict[str, str] = {
    "absent": "OutOfMemoryError",
    "amp": """
        autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
        get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
        set_autocast_enabled set_autocast_gpu_dtype
    """,
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "checks": "",
    "compiler": "compile cond while_loop",
    "core.device": "device",
    "core.dtypes": "",
    "core.layout": "",
    "core.mode": "",
    "core.tensor": "",
    "func": "vmap",
    "futures": "Future",
    "inspect.summary": "summary",
    "jit": "ScriptModule",
    "kernels.printing": "set_printoptions",
    "legacy": "",
    "ops.memory": "",
    "ops.random": "Generator default_generator _dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad",
    "serialization": "PyTorchFileReader load save",
    "switches": "",
    "version": "__version__",
}

#: Where functions are declared.
DECLARING = ("ops", "nn.functional")

#: Submodules that are no part of the public face.
HIDDEN = frozenset(
    "absent moved checks compat core dtypes foreach inspect kernels legacy ops switches".split()
)
BEGIN, END = "# The table (scripts/make_names.py writes it).\n", "# End of the table.\n"


def modules(package: str) -> list[Any]:
    """Return a package and all modules in it."""
    found = importlib.import_module(f"tinytorch.{package}")
    names = [each.name for each in pkgutil.walk_packages(found.__path__, f"{found.__name__}.")]
    return [found, *map(importlib.import_module, sorted(names))]


def defined(module: Any) -> Iterator[str]:
    """Yield the names that a module defines, and does not import."""
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (
                each.id
                for target in node.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            )


def table() -> dict[str, list[str]]:
    """Return the public names by the module that has them."""
    found: dict[str, set[str]] = {}
    for path, names in OTHERS.items():
        listed = names.split() or importlib.import_module(f"tinytorch.{path}").__all__
        found[path] = set(listed)
    home: dict[int, str] = {}  # of a function by its `id`
    for package in DECLARING:
        for module in modules(package):
            for name in defined(module):
                home.setdefault(id(vars(module)[name]), module.__name__.removeprefix("tinytorch."))
    for name, function in register.functions.items():
        if "." not in name:
            path = home.get(id(function.raw))
            if path is None and (plain := register.functions.get(name.removesuffix("_"))):
                path = home.get(id(plain.raw))  # of the derived in-place form
            path = path or "ops.operators"  # a method of Tensor
            found.setdefault(path, set()).add(name)
    return {path: sorted(found[path]) for path in sorted(found)}


def submodules() -> list[str]:
    """Return the names of the submodules that can be asked for as attributes."""
    import tinytorch

    return sorted(
        each.name for each in pkgutil.iter_modules(tinytorch.__path__) if each.name != "_version"
    )


def written(names: dict[str, list[str]], submodules: list[str]) -> str:
    """Return the table as source text."""
    lines = ["_NAMES = {\n"]
    for path, listed in names.items():
        line = f'    "{path}": "{" ".join(listed)}",\n'
        if len(line) > 121:
            body = textwrap.fill(
                " ".join(listed), 116, initial_indent=" " * 8, subsequent_indent=" " * 8
            )
            line = f'    "{path}": """\n{body}\n    """,\n'
        lines.append(line)
    body = textwrap.fill(
        " ".join(submodules), 116, initial_indent=" " * 4, subsequent_indent=" " * 4
    )
    return "".join(lines) + f'}}\n_SUBMODULES = """\n{body}\n"""\n'


def stub(names: dict[str, list[str]], submodules: list[str]) -> str:
    """Return the text of the stub: what editors and type checkers see of the package."""
    lines = ["# Generated by scripts/make_names.py: do not edit.\n", "from typing import Any\n\n"]
    for path, listed in names.items():
        private = [each for each in listed if not each.startswith("_") or each == "__version__"]
        where = (
            f"tinytorch.compat.{path}"
            if (PACKAGE / "compat" / f"{path.split('.')[0]}.py").exists()
            or (PACKAGE / "compat" / path.split(".")[0]).is_dir()
            else f"tinytorch.{path}"
        )
        lines += [f"from {where} import {each} as {each}\n" for each in private]
    for each in submodules:
        if each in HIDDEN or each.startswith("_"):
            continue
        inside = not (PACKAGE / each).is_dir() and not (PACKAGE / f"{each}.py").exists()
        lines.append(f"from tinytorch{'.compat' if inside else ''} import {each} as {each}\n")
    return (
        "".join(lines)
        + "\ne: float\ninf: float\nnan: float\npi: float\nnewaxis: None\n\ndef __getattr__(name: str) -> Any: ...\n"
    )


if __name__ == "__main__":
    names, below = table(), submodules()
    path = PACKAGE / "__init__.py"
    source = path.read_text()
    start, end = source.index(BEGIN) + len(BEGIN), source.index(END)
    texts = {
        path: source[:start] + written(names, below) + source[end:],
        path.with_suffix(".pyi"): stub(names, below),
    }
    stale = [
        each.name for each, text in texts.items() if not each.exists() or each.read_text() != text
    ]
    if "--check" in sys.argv[1:]:
        sys.exit(f"run scripts/make_names.py: stale are {', '.join(stale)}" if stale else 0)
    for each, text in texts.items():
        each.write_text(text)
