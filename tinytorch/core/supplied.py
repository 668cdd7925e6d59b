"""Functions that `core`, `ops` and `data` use but later modules define: they are composed of ops or of later classes.

This registry is the only place where a module refers to a later module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: By module, the functions that it defines.
_MODULES = {
    "core.strided": "strided restrided copy_slices",  # parts of a tensor's memory by their places
    "kernels.native": "direct",  # computes a kernel by its twin, or by the loop of a ufunc
    "kernels.layouts": "settled ordered arranged",  # the order of dimensions in memory (loads the native library)
    "autograd.hooks": "add_hook",
    "autograd.node": "input_metadata shown",
    "autograd.pytorch_graph": "node_name inputs_shown next_functions",  # what PyTorch's graph shows
    "sparse.rules": "of_sparse refused",  # calls the rule of a function for sparse tensors, or says that there is none
    "sparse.gradients": "add_gradient fitted_gradient sparse_root_gradient sparse_rows",
    "sparse.construct": "sparsified compressed_from_dense sparse_zeros",
    "fx._aten": "aten profiler",  # `torch.ops`
    "torchvision_ops": "torchvision_operators",
    "torchaudio_ops": "torchaudio_operators",
    "ops.memory": "from_dlpack",
    "ops.complex": "conjugate lazy_conjugate as_kind real_part imaginary_part",
    "ops.bits": "through_bits bit_view with_bits into_bits resolved resolving",
    "ops.batching": "batched refuse_out batched_grad of_batched",  # tensors inside of `vmap`
    "autograd.batches": "gradients_of_batch",
    "autograd.batched_function": "by_rule function_of_batch",
    "compiler.sweep": "sweep",
    "inspect.bars": "progress",
    "nn.functional.padding": "pad",
    "ops.overrides": "asked operator_overridden",  # `__torch_function__`
    "inspect.finite": "nonfinite",  # names the op that made a number which is not finite
    "inspect.mistakes": "add_notes",  # notes on errors
    "serialization.saving": "reduced",  # how a pickle rebuilds a tensor
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


@functools.cache
def supplied(name: str) -> Callable[..., Any]:
    """Return a function that a later module defines; the module is imported when it is first asked for."""
    function: Callable[..., Any] = getattr(import_module(f"tinytorch.{_HOMES[name]}"), name)
    return function
