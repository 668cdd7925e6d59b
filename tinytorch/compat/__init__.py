"""What exists for other devices, older programs and private names of PyTorch: nothing else in the package imports it.

A module of this folder is a submodule of `tinytorch` itself: `tinytorch.cuda` is made of the file `cuda.py`, if there
is one, and of the rows below "cuda" in the table `names.txt`; `tinytorch.compat.cuda` is another name of the same
module. Most modules have rows alone.

**To add a name** that exists for another device, is private, or is not implemented, add it to its module in
`names.txt`, whose head lists the kinds of names: `missing` raises an error with the reason, `returns` is a function
that returns a value, `of` is an object of another module, and so on. A function with a body goes into a file.

`Finder` is what Python asks for submodules of `tinytorch` that it has not found; `names.py` makes the values of the
table. `install` makes `torch` another name of tinytorch (`alias.py`).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FOLDER = __file__.rpartition("__init__")[0]
__path__ = []  # so that no file of the folder is imported twice, under two names


class AliasFinder:
    """Finds a module under another name: the same module object then stands under both names in `sys.modules`.

    Not derived from `importlib.abc`, whose import is slow.

    Args:
        target: returns the module's own name, given the other one; None for names that this finder does not know.
    """

    def __init__(self, target: Callable[[str], str | None]) -> None:
        self._target = target

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module under its other name."""
        name = self._target(fullname)
        if name is None:
            return None
        from importlib.util import find_spec  # imports more than most programs need

        original = find_spec(name)
        if original is None:
            return None
        loader: Any = self
        spec = ModuleSpec(fullname, loader, origin=original.origin, loader_state=original)
        spec.submodule_search_locations = original.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, imported under its own name."""
        return importlib.import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own specification: its code has run already."""
        spec: Any = module.__spec__
        while isinstance(spec.loader, AliasFinder):  # (a name of `torch` may be one of another name here)
            spec = spec.loader_state
        module.__spec__ = spec

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, for `python -m`."""
        spec = self.find_spec(fullname)
        assert spec is not None
        original = spec.loader_state
        return original.loader.get_code(original.name)


def _own_name(fullname: str) -> str | None:
    package, _, name = fullname.partition(".")
    name = _table().read().equal.get(name) or (name[7:] if name.startswith("compat.") else "")
    return f"tinytorch.{name}" if package == "tinytorch" and name else None


def _table() -> Any:
    return importlib.import_module("tinytorch.names")


class Loader:
    """Makes a module of a file of this folder, if there is one, and of a row of the table."""

    def __init__(self, of_file: Any = None) -> None:
        self._of_file = of_file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of_file, name)

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: Python creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's file, and give it the names of its row."""
        table = _table() if module.__name__ != "tinytorch.names" else None  # (which is being imported)
        if self._of_file is not None:
            if table and module.__name__.removeprefix("tinytorch.") in table.packages():
                module.__path__ = []  # so that Python asks for modules below it
            self._of_file.exec_module(module)
        names = table.names_of(module.__name__) if table else {}
        vars(module).update(names)
        if self._of_file is None:
            module.__doc__ = "Names of PyTorch's: `compat/names.txt` says what each of them is."
            if public := sorted(name for name in names if name[0] != "_"):
                vars(module).setdefault("__all__", public)


class Finder(AliasFinder):
    """Finds the submodules of `tinytorch` that this folder has (see the head of this module)."""

    def __init__(self) -> None:
        super().__init__(_own_name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a submodule of `tinytorch`; None for any other module.

        Raises:
            ImportError: the submodule is one of torchvision's that is not implemented.
        """
        package, _, name = fullname.partition(".")
        if package != "tinytorch":
            return None
        spec = None if "." in name else PathFinder.find_spec(fullname, [FOLDER])
        loader: Any = Loader(spec and spec.loader)
        if spec is not None and spec.loader is not None:  # (a folder without modules has no loader)
            spec.loader = loader
        elif (spec := super().find_spec(fullname)) is None and name in _table().packages():
            spec = ModuleSpec(fullname, loader, is_package=True)
        if spec is None and name.startswith("torchvision."):
            torchvision = importlib.import_module("tinytorch.torchvision")
            raise ImportError(torchvision.missing(name.removeprefix("torchvision.")), name=fullname)
        return spec


sys.meta_path.append(Finder())


def __getattr__(name: str) -> Any:
    if name == "install":
        return importlib.import_module("tinytorch.alias").install
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
