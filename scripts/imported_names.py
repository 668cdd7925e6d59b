"""Tell which of PyTorch's names packages ask for, and which of these tinytorch lacks. Packages are read, never run.

    python scripts/imported_names.py timm /folder/of/packages   # print what is missing, by how many ask
    python scripts/imported_names.py --table [--import] …       # write docs/packages.md and tests/asked_names.txt

An argument is the name of an installed package, a folder that packages were installed into (`pip install --no-deps
--target`), or a folder of source. A name counts where it is imported, or read as an attribute of what was; not under
`try … except ImportError` (or AttributeError), `if TYPE_CHECKING` and `if hasattr(…)`, nor in a package's own tests.
With `--import` the top module of each package that is given by name is imported, with tinytorch in torch's place, by a
process of its own.
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
TABLE, NAMES = ROOT / "docs" / "packages.md", ROOT / "tests" / "asked_names.txt"

ROOTS = ("torch", "functorch")
CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
OF_TESTS = {"test", "tests", "testing", "testsuite", "benchmarks", "examples", "docs"}


class Package(NamedTuple):
    """A package: its name and version, its files, and what users import, where it was given by name."""

    name: str
    version: str
    files: list[Path]
    modules: list[str]


# What is asked for --------------------------------------------------------------------------------


class Asked(ast.NodeVisitor):
    """The names of torch that a file asks for, dotted."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self.guarded = False
        #: By the file's name for it, what of torch it is.
        self.aliases: dict[str, str] = {}
        for node in ast.walk(tree):
            self.aliases.update(aliases(node))
        self.visit(tree)

    def add(self, name: str) -> None:
        """Note a name, unless it stands under a guard."""
        if not self.guarded:
            self.names.add(name)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: D102
        for each in node.names:
            if each.name.split(".")[0] in ROOTS:
                self.add(each.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: D102
        module = node.module or ""
        if not node.level and module.split(".")[0] in ROOTS:
            for each in node.names:
                self.add(module if each.name == "*" else f"{module}.{each.name}")

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
        """Visit nodes, which may stand under a guard."""
        before, self.guarded = self.guarded, self.guarded or guarded
        for node in nodes:
            self.visit(node)
        self.guarded = before


def aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, with what of torch they are."""
    if isinstance(node, ast.Import):
        for each in node.names:
            if each.name.split(".")[0] in ROOTS:
                yield (each.asname, each.name) if each.asname else (each.name.split(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in ROOTS:
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"


def asked(package: Package) -> set[str]:
    """Return the names of torch that a package's files ask for."""
    found: set[str] = set()
    for path in package.files:
        try:
            text = path.read_bytes()
            if b"torch" in text:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of what the package wrote
                    found |= Asked(ast.parse(text)).names
        except (OSError, SyntaxError, ValueError):
            continue
    return found


# Who has it ---------------------------------------------------------------------------------------


@functools.cache
def lookup(name: str) -> tuple[Any, str]:
    """Return what a dotted name is, and the name as far as modules and classes lead: `torch.float32` of `….itemsize`.

    Raises:
        AttributeError: there is nothing of this name.
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
    """Return whether PyTorch ("torch") or tinytorch has a name of torch, or of functorch."""
    if library != "torch":
        name = f"tinytorch.{name}" if name.startswith("functorch") else f"tiny{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old names
        try:
            lookup(name)
        except Exception:
            return False
    return True


def pytorchs(names: Iterable[str]) -> set[str]:
    """Return the names that PyTorch has, as far as modules and classes lead; without operators by their raw names."""
    found = set()
    for name in names:
        if has(name, "torch") and not name.startswith(("torch.ops.", "torch.classes.")):
            found.add(lookup(name)[1])
    return found - set(ROOTS)


# Packages -----------------------------------------------------------------------------------------


def packages(argument: str) -> Iterator[Package]:
    """Yield the packages that an argument stands for."""
    folder = Path(argument)
    if not folder.is_dir():
        yield installed(importlib.metadata.distribution(argument))
        return
    found = sorted(importlib.metadata.distributions(path=[argument]), key=lambda each: each.name.lower())
    yield from (installed(each)._replace(modules=[]) for each in found)
    if not found:
        yield Package(folder.name, "", source(folder.rglob("*.py")), [])


def installed(found: importlib.metadata.Distribution) -> Package:
    """Return a package that was installed."""
    files = [each for each in found.files or [] if each.suffix == ".py"]
    tops = {each.parts[0] for each in files if len(each.parts) == 2 and each.name == "__init__.py"}
    tops |= {each.stem for each in files if len(each.parts) == 1}
    tops = {each for each in tops if each.lower() not in OF_TESTS} or tops
    stem = found.name.lower().replace("-", "_")
    own = [each for each in sorted(tops) if each.lower().replace("pytorch_", "") == stem.replace("pytorch_", "")]
    return Package(found.name, found.version, source(Path(str(each.locate())) for each in files), own or sorted(tops))


def source(paths: Iterable[Path]) -> list[Path]:
    """Return the files that are no tests, sorted."""
    return sorted(path for path in paths if not OF_TESTS & set(path.parts[-4:-1]))


def imported(module: str) -> str:
    """Import a module by a process where torch is tinytorch; return "yes", or what is in the way."""
    command = [sys.executable, "-m", "tinytorch", "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "no end within two minutes"
    if done.returncode == 0:
        return "yes"
    error = (done.stderr.strip().splitlines() or ["?"])[-1]
    other = re.fullmatch(r"ModuleNotFoundError: No module named '(?!torch\b|tinytorch|functorch)([\w.]+)'.*", error)
    return f"not tried: {other[1]} is not installed" if other else f"no: {error[:140]}"


# What is written ----------------------------------------------------------------------------------


def grouped(names: Iterable[str]) -> str:
    """Return names as lines, one for each module: `torch.nn.functional: gelu relu`."""
    lines = collections.defaultdict(list)
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        lines[module].append(last)
    return "".join(f"{module}: {' '.join(listed)}\n" for module, listed in sorted(lines.items()))


HEAD = """# Packages written for PyTorch

The names of PyTorch that packages use, and those of them that tinytorch lacks, found in the packages' source. A name
that exists may still raise an error, when it is called, that it is not implemented ([differences](differences.md)).
`python scripts/imported_names.py --table FOLDER` writes this page, from packages installed into a folder.

"""


def table(rows: list[tuple[Package, set[str], set[str], str]]) -> str:
    """Return the page: a row for each package, the names it asks for, those that are missing, and how it imports."""
    total = set().union(*(each[1] for each in rows))
    missing = set().union(*(each[2] for each in rows))
    imports = any(row[3] for row in rows)
    lines = [
        f"{len(rows)} packages ask for {len(total)} names of PyTorch, of which {len(missing)} are missing here.\n",
        "| package | names | missing | which |" + (" imports |" if imports else ""),
        "|---|---|---|---|" + ("---|" if imports else ""),
    ]
    for package, names, lacking, how in rows:
        few = sorted(each.removeprefix("torch.") for each in lacking)
        which = ", ".join(f"`{each}`" for each in few[:4]) + (" …" if len(few) > 4 else "")
        line = f"| {package.name} {package.version} | {len(names)} | {len(lacking)} | {which} |"
        lines.append(line + (f" {how.replace('|', '/') or 'not tried'} |" if imports else ""))
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--table", action="store_true", help="write docs/packages.md and tests/asked_names.txt")
    parser.add_argument("--import", action="store_true", dest="imports", help="import the packages' top modules")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        parser.error("PyTorch must be installed: it says which of the names there are")
    rows = []
    everyone: collections.Counter[str] = collections.Counter()
    who = collections.defaultdict(list)
    seen: set[str] = set()
    for argument in options.packages:
        for package in packages(argument):
            key = package.name.lower().replace("_", "-")
            names = set() if key in seen else pytorchs(asked(package))
            if not names:
                continue
            lacking = {name for name in names if not has(name, "tinytorch")}
            how = "; ".join(sorted({imported(each) for each in package.modules})) if options.imports else ""
            seen.add(key)
            rows.append((package, names, lacking, how))
            everyone.update(names)
            for name in lacking:
                who[name].append(package.name)
    rows.sort(key=lambda row: row[0].name.lower())
    if options.table:
        TABLE.write_text(table(rows), "utf-8")
        NAMES.write_text(grouped(name for name in everyone if name not in who), "utf-8")
        return
    for name, asking in sorted(who.items(), key=lambda each: (-len(each[1]), each[0])):
        print(f"{len(asking):4}  {name:60}  {' '.join(asking)}")
    for package, names, lacking, how in rows:
        print(f"{package.name} {package.version}: {len(names)} names, {len(lacking)} missing. {how}")


if __name__ == "__main__":
    main()
