"""Modules with another name, in 0.1, which pickles of that time have, or in PyTorch: found as what they are now."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

#: By the old name below `tinytorch`, the new one.
MOVED = {
    "_tensor": "core.tensor",
    "autograd.autocast": "ops.autocast",
    "autograd.engine": "core.engine",
    "autograd.inplace": "core.inplace",
    "autograd.mode": "core.mode",
    "autograd.op": "core.op",
    "autograd.view": "core.view",
    "blas": "kernels.blas",
    "device": "core.device",
    "distributed.constants": "distributed",
    "distributed.distributed_c10d": "distributed",
    "dtypes": "kernels.dtypes",
    "futures": "distributed.futures",
    "functions": "nn.functional.unlike",
    "layout": "core.layout",
    "nn._activations": "nn.functional.activation",
    "nn._losses": "nn.functional.loss",
    "nn._padding": "nn.functional.padding",
    "nn._pooling": "nn.functional.pooling",
    "nn._reduction": "nn.functional.reduction",
    "nn._resampling": "nn.functional.resampling",
    "ops.attention": "ops.nn.attention",
    "ops.conv": "ops.nn.conv",
    "ops.ctc": "ops.nn.ctc",
    "ops.decompose": "ops.linalg.factor",
    "ops.embedding": "ops.nn.embedding",
    "ops.matrices": "ops.linalg.matrices",
    "ops.norm": "ops.nn.norm",
    "ops.pool": "ops.nn.pool",
    "ops.resample": "ops.nn.resample",
    "ops.rnn": "ops.nn.rnn",
    "ops.solve": "ops.linalg.solve",
    "summary": "inspect.summary",
    "utils._contextlib": "autograd.grad_mode",
    "utils.data._utils.fetch": "data.worker",
    "utils.data._utils.worker": "data.worker",
}


class Finder:
    """Finds modules under names that are not theirs, as the modules that they are.

    Not derived from `importlib.abc`, which imports much.

    Args:
        own: returns the name of the module that is meant, or None for what is not looked for here.
    """

    def __init__(self, own: Callable[[str], str | None]) -> None:
        self._own = own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where a module is found, if it is one of those."""
        own = self._own(fullname)
        if own is None:
            return None
        from importlib.util import find_spec  # imports more than most programs need

        if (found := find_spec(own)) is None:
            return None
        loader: Any = self
        spec = importlib.machinery.ModuleSpec(fullname, loader, origin=found.origin, loader_state=found)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module that is meant."""
        return importlib.import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module, which has run under its own name, as it is."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state

    def get_code(self, fullname: str) -> Any:
        """Return the code of a module, for `python -m`."""
        spec = self.find_spec(fullname, None)
        assert spec is not None
        found = spec.loader_state
        return found.loader.get_code(found.name)


def _moved(name: str) -> str | None:
    package, _, rest = name.partition(".")
    return f"tinytorch.{MOVED[rest]}" if package == "tinytorch" and rest in MOVED else None


class _Named:
    """Finds and makes the modules of the table in `named`, which is not read before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        loader: Any = self
        if package != "tinytorch" or name == "named" or not importlib.import_module("tinytorch.named").is_module(name):
            return None
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "Names of PyTorch's, of what is not there: `tinytorch/compat/named.py` has them."
        vars(module).update(importlib.import_module("tinytorch.named").names_of(module.__name__))


sys.meta_path += [Finder(_moved), _Named()]
