#!/usr/bin/env python
"""List the PyTorch names that packages use, and those that tinytorch lacks. The packages are parsed, not executed.

    python scripts/imported_names.py timm /folder/of/packages   # print missing names, the most used ones first
    python scripts/imported_names.py --table [--import] …       # write docs/coverage.md and tests/asked_names.txt

An argument is the name of an installed package, a folder into which packages were installed (`pip install --no-deps
--target`), or a folder of source code. A name counts if it is imported, or accessed as an attribute of an imported
name; not under `try … except ImportError` (or AttributeError), `if TYPE_CHECKING` or `if hasattr(…)`, and not in the
tests of the package. With `--import`, the top-level module of each package that is an argument by name is imported in a
separate process, with tinytorch in place of torch.
"""

from __future__ import annotations

import argparse
import ast
import collections
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.page import put  # noqa: E402

TABLE, NAMES = ROOT / "docs" / "coverage.md", ROOT / "tests" / "asked_names.txt"

ROOTS = ("torch", "functorch")
CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
TEST_FOLDERS = {"test", "tests", "testing", "testsuite", "benchmarks", "examples", "docs"}


class Package(NamedTuple):
    """A package: its name, version and files, and its top-level modules if it was an argument by name."""

    name: str
    version: str
    files: list[Path]
    modules: list[str]


# The names that packages use ----------------------------------------------------------------------


class UsedNames(ast.NodeVisitor):
    """The dotted names of torch that a file uses."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self.guarded = False
        #: The dotted names in torch of the local names of the file.
        self.aliases: dict[str, str] = {}
        for node in ast.walk(tree):
            self.aliases.update(aliases(node))
        self.visit(tree)

    def add(self, name: str) -> None:
        """Add a name, unless the code is guarded."""
        if not self.guarded:
            self.names.add(name)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: D102
        for alias in node.names:
            if alias.name.split(".")[0] in ROOTS:
                self.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: D102
        module = node.module or ""
        if not node.level and module.split(".")[0] in ROOTS:
            for alias in node.names:
                self.add(module if alias.name == "*" else f"{module}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: D102
        names: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self.aliases:
            self.add(".".join([self.aliases[value.id], *reversed(names)]))
        else:
            self.visit(value)

    def visit_Try(self, node: ast.Try) -> None:  # noqa: D102
        caught = {
            name.id
            for handler in node.handlers
            for name in ast.walk(handler.type or ast.Name("Exception"))
            if isinstance(name, ast.Name)
        }
        self.under(bool(caught & CAUGHT), node.body)
        for part in (node.handlers, node.orelse, node.finalbody):
            self.under(False, part)

    def visit_If(self, node: ast.If) -> None:  # noqa: D102
        test = ast.unparse(node.test)
        self.visit(node.test)
        self.under("TYPE_CHECKING" in test or "hasattr(" in test, node.body)
        self.under("hasattr(" in test, node.orelse)

    def under(self, guarded: bool, nodes: Iterable[ast.AST]) -> None:
        """Visit nodes, which may be guarded: executed only if a name exists."""
        before, self.guarded = self.guarded, self.guarded or guarded
        for node in nodes:
            self.visit(node)
        self.guarded = before


def aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the local names that an import binds, with their dotted names in torch."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in ROOTS:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in ROOTS:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def used_names(package: Package) -> set[str]:
    """Return the names of torch that the files of a package use."""
    names: set[str] = set()
    for path in package.files:
        try:
            text = path.read_bytes()
            if b"torch" in text:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about the code of the package
                    names |= UsedNames(ast.parse(text)).names
        except (OSError, SyntaxError, ValueError):
            continue
    return names


# The names that a library has ---------------------------------------------------------------------


@functools.cache
def lookup(name: str) -> tuple[Any, str]:
    """Return the object of a dotted name, and the name without attributes of instances.

    For `torch.float32.itemsize`, these are the object and the name of `torch.float32`, which is an instance.

    Raises:
        AttributeError: the name does not exist.
    """
    head, _, last = name.rpartition(".")
    if not head:
        return importlib.import_module(name), name
    value, known = lookup(head)
    if known != head or not isinstance(value, (types.ModuleType, type)):
        return value, known
    try:
        return inspect.getattr_static(value, last) if isinstance(value, type) else getattr(value, last), name
    except AttributeError:
        if isinstance(value, type):
            raise
    try:
        return importlib.import_module(name), name
    except Exception as error:
        raise AttributeError(name) from error


def has(name: str, library: str) -> bool:
    """Return whether PyTorch (`library="torch"`) or tinytorch has a name of torch or functorch."""
    if library != "torch":
        name = f"tinytorch.{name}" if name.startswith("functorch") else f"tiny{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated names
        try:
            lookup(name)
        except Exception:
            return False
    return True


def pytorchs(names: Iterable[str]) -> set[str]:
    """Return the names that PyTorch has, without attributes of instances, and without operators of `torch.ops`."""
    known = set()
    for name in names:
        if has(name, "torch") and not name.startswith(("torch.ops.", "torch.classes.")):
            known.add(lookup(name)[1])
    return known - set(ROOTS)


# Packages -----------------------------------------------------------------------------------------


def packages(argument: str) -> Iterator[Package]:
    """Yield the packages that an argument names."""
    folder = Path(argument)
    if not folder.is_dir():
        yield installed(importlib.metadata.distribution(argument))
        return
    found = sorted(
        importlib.metadata.distributions(path=[argument]), key=lambda distribution: distribution.name.lower()
    )
    yield from (installed(distribution)._replace(modules=[]) for distribution in found)
    if not found:
        yield Package(folder.name, "", source(folder.rglob("*.py")), [])


def installed(distribution: importlib.metadata.Distribution) -> Package:
    """Return an installed package."""
    files = [path for path in distribution.files or [] if path.suffix == ".py"]
    tops = {path.parts[0] for path in files if len(path.parts) == 2 and path.name == "__init__.py"}
    tops |= {path.stem for path in files if len(path.parts) == 1}
    if not tops:  # a namespace: the packages in it, or else its modules
        inner = [path.parts for path in files if len(path.parts) == 3 and path.name == "__init__.py"]
        inner = inner or [path.with_suffix("").parts for path in files if len(path.parts) == 2]
        tops = {".".join(parts[:2]) for parts in inner}
    tops = {name for name in tops if name.lower() not in TEST_FOLDERS} or tops
    stem = distribution.name.lower().replace("-", "_")
    main = [name for name in sorted(tops) if name.lower().replace("pytorch_", "") == stem.replace("pytorch_", "")]
    paths = source(Path(str(path.locate())) for path in files)
    return Package(distribution.name, distribution.version, paths, main or sorted(tops))


def source(paths: Iterable[Path]) -> list[Path]:
    """Return the sorted paths of files outside test folders."""
    return sorted(path for path in paths if not TEST_FOLDERS & set(path.parts[-4:-1]))


def imported(module: str) -> str:
    """Import a module in a process where torch is tinytorch; return "yes" or the reason why it fails."""
    command = [sys.executable, "-m", "tinytorch", "-c", f"import {module}"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "no end within two minutes"
    if process.returncode == 0:
        return "yes"
    # (Notes follow the error, indented.)
    error = ([line for line in process.stderr.strip().splitlines() if line[:1].strip()] or ["?"])[-1]
    other = re.fullmatch(r"ModuleNotFoundError: No module named '(?!torch\b|tinytorch|functorch)([\w.]+)'.*", error)
    return f"not tried: {other[1]} is not installed" if other else f"no: {error[:140]}"


# The page -----------------------------------------------------------------------------------------


def grouped(names: Iterable[str]) -> str:
    """Return names as text with one line per module, such as `torch.nn.functional: gelu relu`."""
    lines = collections.defaultdict(list)
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        lines[module].append(last)
    return "".join(f"{module}: {' '.join(listed)}\n" for module, listed in sorted(lines.items()))


HEAD = """## Packages written for PyTorch

The names of PyTorch that packages use, and those of them that tinytorch lacks, found in the packages' source. A name
that exists may still raise an error, when it is called, that it is not implemented ([differences](differences.md)).
`python scripts/imported_names.py --table FOLDER` writes this part, from packages installed into a folder.

"""


def table(rows: list[tuple[Package, set[str], set[str], str]]) -> str:
    """Return the page's part: a row per package, with its numbers of used and missing names and how it imports."""
    total = set().union(*(row[1] for row in rows))
    missing = set().union(*(row[2] for row in rows))
    imports = any(row[3] for row in rows)
    lines = [
        f"{len(rows)} packages ask for {len(total)} names of PyTorch, of which {len(missing)} are missing here.\n",
        "| package | names | missing | which |" + (" imports |" if imports else ""),
        "|---|---|---|---|" + ("---|" if imports else ""),
    ]
    for package, names, lacking, how in rows:
        few = sorted(name.removeprefix("torch.") for name in lacking)
        which = ", ".join(f"`{name}`" for name in few[:4]) + (" …" if len(few) > 4 else "")
        line = f"| {package.name} {package.version} | {len(names)} | {len(lacking)} | {which} |"
        lines.append(line + (f" {how.replace('|', '/') or 'not tried'} |" if imports else ""))
    return HEAD + "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--table", action="store_true", help="write docs/coverage.md and tests/asked_names.txt")
    parser.add_argument("--import", action="store_true", dest="imports", help="import the packages' top modules")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        parser.error("PyTorch must be installed: only names that it has are counted")
    rows = []
    all_names: set[str] = set()
    packages_lacking = collections.defaultdict(list)
    seen: set[str] = set()
    for argument in options.packages:
        for package in packages(argument):
            key = package.name.lower().replace("_", "-")
            names = set() if key in seen else pytorchs(used_names(package))
            if not names:
                continue
            lacking = {name for name in names if not has(name, "tinytorch")}
            how = "; ".join(sorted({imported(module) for module in package.modules})) if options.imports else ""
            seen.add(key)
            rows.append((package, names, lacking, how))
            all_names |= names
            for name in lacking:
                packages_lacking[name].append(package.name)
    rows.sort(key=lambda row: row[0].name.lower())
    if options.table:
        TABLE.write_text(put(TABLE.read_text("utf-8"), "packages", table(rows)), "utf-8")
        NAMES.write_text(grouped(all_names - set(packages_lacking)), "utf-8")
        return
    for name, users in sorted(packages_lacking.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(users):4}  {name:60}  {' '.join(users)}")
    for package, names, lacking, how in rows:
        print(f"{package.name} {package.version}: {len(names)} names, {len(lacking)} missing. {how}")


if __name__ == "__main__":
    main()
