"""Modules with another name, in 0.1, which pickles of that time have, or in PyTorch: found as what they are now."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
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


class _Finder:
    """Finds and loads them, and modules of the table in `named`; not from `importlib.abc`, which imports much."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        loader: Any = self
        if package != "tinytorch" or name == "named":
            return None
        if name in MOVED:
            return importlib.machinery.ModuleSpec(fullname, loader)
        if importlib.import_module("tinytorch.named").is_module(name):
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        if spec.submodule_search_locations is not None:
            return None
        module = importlib.import_module(f"tinytorch.{MOVED[spec.name.partition('.')[2]]}")
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        if spec.name.partition(".")[2] in MOVED:
            module.__spec__ = self._own  # it stays what it is
        else:
            module.__doc__ = "Names of PyTorch's, of what is not there: `tinytorch/compat/named.py` has them."
            vars(module).update(importlib.import_module("tinytorch.named").names_of(spec.name))


sys.meta_path.append(_Finder())
