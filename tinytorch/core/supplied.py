"""Modules that `core` and `ops` call but that come later, or are needed by few programs: imported on first use.

Each is a name here, by which a function of it is called: `sparse.of_sparse(...)`. Type checkers and editors see the
module itself. This is the only place where a module refers to a later module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "batches", "batching", "bits", "dlpack", "imported", "inspect", "layouts", "left_out", "memory", "native",
    "outputs", "overriding", "picture", "references", "saving", "sparse",
]  # fmt: skip


def imported(path: str) -> Any:
    """Return a module by its path below `tinytorch`, for tables of names that are imported when they are asked for."""
    return import_module(f"tinytorch.{path}")


class _Later:
    """A module that is imported when a function of it is first asked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(imported(self._path), name)
        setattr(self, name, found)  # (the next time it is a plain attribute)
        return found


if TYPE_CHECKING:
    from tinytorch import inspect
    from tinytorch.autograd import batches, references
    from tinytorch.autograd import node as picture
    from tinytorch.core import strided as memory
    from tinytorch.kernels import layouts, native
    from tinytorch.ops import batching, left_out
    from tinytorch.ops import complex as bits
    from tinytorch.ops import memory as dlpack
    from tinytorch.ops import out as outputs
    from tinytorch.ops import overrides as overriding
    from tinytorch.serialization import saving
    from tinytorch.sparse import supplies as sparse
else:
    native = _Later("kernels.native")  # computes a kernel by its twin, or by the loop of a ufunc
    layouts = _Later("kernels.layouts")  # the order of dimensions in memory (loads the native library)
    memory = _Later("core.strided")  # parts of a tensor's memory by their places
    overriding = _Later("ops.overrides")  # `__torch_function__`
    bits = _Later("ops.complex")  # complex numbers, and lazy conjugates and negatives
    outputs = _Later("ops.out")  # how functions write into `out=`
    dlpack = _Later("ops.memory")  # memory of other libraries
    left_out = _Later("ops.left_out")  # names that tinytorch does not have
    sparse = _Later("sparse.supplies")  # tensors of which only some elements are stored
    batching = _Later("ops.batching")  # tensors inside of `vmap`
    batches = _Later("autograd.batches")  # gradients of batches, and functions of users inside of `vmap`
    picture = _Later("autograd.node")  # what programs see of a node: PyTorch's graph, and hooks
    references = _Later("autograd.references")  # how many references to a gradient a walk itself holds
    saving = _Later("serialization.saving")  # how a pickle rebuilds a tensor or a storage
    inspect = _Later("inspect")  # notes on errors, what explains a NaN, bars
