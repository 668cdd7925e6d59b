"""What exists for other devices, older programs and private names of PyTorch: nothing in the house imports it.

A file of this folder is a submodule of `tinytorch` itself: `compat/cuda/__init__.py` is `tinytorch.cuda`, and
`tinytorch.compat.cuda` is another name of the same module. `Finder`, which Python asks for submodules of `tinytorch`
that it has not found, looks in three places:

| a module that is | is found in |
|---|---|
| another name of a module | `RENAMED` |
| a file of this folder | the folder |
| only names that tinytorch does not implement | the table in `named.py`, which is read then |

`install` makes `torch` another name of tinytorch (`alias.py`).
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

#: PyTorch's names of modules that have another name here.
RENAMED = {
    "_tensor": "core.tensor",
    "__future__": "nn.modules._conversion",
    "distributed.constants": "distributed",
    "distributed.distributed_c10d": "distributed",
    "export.dynamic_shapes": "fx.export.dynamic_shapes",
    "export.exported_program": "fx.export.exported_program",
    "export.graph_signature": "fx.export.graph_signature",
    "futures": "distributed.futures",
    "fx.passes.infra.pass_manager": "fx.passes.pass_manager",
    "fx.passes.utils.matcher_utils": "fx.passes.matcher_utils",
    "nn._reduction": "nn.functional.reduction",
    "nn.parallel.distributed": "distributed.data_parallel",
    "onnx.errors": "fx.onnx.errors",
    "profiler": "inspect.profiler",
    "quantization": "ao.quantization",
    "return_types": "ops.return_types",
    "utils._contextlib": "autograd.grad_mode",
    "utils.data._utils.fetch": "data.worker",
    "utils.data._utils.worker": "data.worker",
}


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
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, for `python -m`."""
        spec = self.find_spec(fullname)
        assert spec is not None
        original = spec.loader_state
        return original.loader.get_code(original.name)


def _own_name(fullname: str) -> str | None:
    package, _, name = fullname.partition(".")
    name = RENAMED.get(name) or (name[7:] if name.startswith("compat.") else "")
    return f"tinytorch.{name}" if package == "tinytorch" and name else None


class Finder(AliasFinder):
    """Finds the submodules of `tinytorch` whose names are not the paths of files (see the head of this module)."""

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
        spec = super().find_spec(fullname)
        if spec is None and "." not in name:
            spec = PathFinder.find_spec(fullname, [FOLDER])
        if spec is None or spec.loader is None:  # (a folder without modules has no loader)
            spec = importlib.import_module("tinytorch.named").find_spec(fullname)
        if spec is None and name.startswith("torchvision."):
            torchvision = importlib.import_module("tinytorch.torchvision")
            raise ImportError(torchvision.missing(name.removeprefix("torchvision.")), name=fullname)
        return spec


sys.meta_path.append(Finder())


def __getattr__(name: str) -> Any:
    if name == "install":
        return importlib.import_module("tinytorch.alias").install
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
