"""Functions that `core`, `ops` and `data` use but later modules define: they are composed of ops or of later classes.

This registry is the only place where a module refers to a later module.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: The module that defines each function.
_MODULES = {
    "strided": "core.strided",  # the part of a tensor's memory at a place
    "restrided": "core.strided",  # its gradient: the part at a place of a memory of zeros with a tensor added to it
    "copy_slices": "core.strided",  # a tensor with another one written at a place of its memory
    "direct": "kernels.native",  # a function that computes a kernel by its twin, or by the loop of a ufunc
    "settled": "kernels.layouts",  # whether arrays need no other order of dimensions (it loads the native library)
    "ordered": "kernels.layouts",  # calls a kernel of two arrays so that its result has PyTorch's order of dimensions
    "arranged": "kernels.layouts",  # a result in the order of dimensions that PyTorch's has
    "add_hook": "autograd.hooks",  # enters a hook into a dictionary and returns the handle that removes it
    "input_metadata": "autograd.node",  # the shapes and dtypes of the gradients that a node receives
    "shown": "autograd.node",  # the node of an op, with the members that show what it has saved
    "node_name": "autograd.pytorch_graph",  # the name of the node of an op
    "inputs_shown": "autograd.pytorch_graph",  # the inputs of the node of an op that PyTorch's has, in its order
    "next_functions": "autograd.pytorch_graph",  # the nodes that PyTorch's graph has before the node of an op
    "count_own_references": "autograd.references",  # how many references to a gradient a walk itself holds
    "of_sparse": "sparse.rules",  # calls the rule of a function for sparse tensors
    "add_gradient": "sparse.gradients",  # a leaf's gradient and a further one, of which one is sparse
    "fitted_gradient": "sparse.gradients",  # checks and converts a sparse gradient
    "sparsified": "sparse.construct",  # a dense tensor in the layout COO, or another one
    "compressed_from_dense": "sparse.construct",  # dense matrices in one of the layouts CSR, CSC, BSR and BSC
    "sparse_zeros": "sparse.construct",  # a tensor without entries
    "sparse_root_gradient": "sparse.gradients",  # the gradient of a sparse tensor from which a backward pass starts
    "sparse_rows": "sparse.gradients",  # the gradient of looked-up rows as a sparse tensor
    "aten": "fx._aten",  # `torch.ops.aten`: PyTorch's own operators
    "profiler": "fx._aten",  # `torch.ops.profiler`: its operators that mark regions
    "torchvision_operators": "torchvision_ops",  # the operators of torchvision's compiled library
    "torchaudio_operators": "torchaudio_ops",  # those of torchaudio's
    "from_dlpack": "ops.memory",  # a tensor on the memory of another library's array
    "conjugate": "ops.complex",  # the complex conjugate
    "lazy_conjugate": "ops.complex",  # a view with the conjugates
    "as_kind": "ops.complex",  # a tensor viewed as complex numbers, or as real ones
    "real_part": "ops.complex",  # the real part of a complex tensor, as a view
    "imaginary_part": "ops.complex",  # its imaginary part
    "through_bits": "ops.bits",  # calls a function on the plain view of a lazy conjugate; its result gets the bits
    "of_bits": "ops.bits",  # calls an op some of whose arguments are lazy conjugates or negatives
    "write_to_bits": "ops.bits",  # calls a function that writes into one of them
    "bit_view": "ops.bits",  # makes one of a plain view
    "with_bits": "ops.bits",  # makes one of any tensor
    "into_bits": "ops.bits",  # writes results into them
    "batched": "ops.batching",  # makes a batched tensor of one with all examples
    "refuse_out": "ops.batching",  # raises an error for `out=` inside of `vmap`
    "batched_grad": "ops.batching",  # `autograd.grad` of batched tensors
    "gradients_of_batch": "autograd.batches",  # the gradients for a batch of vectors, by one walk
    "by_rule": "autograd.batched_function",  # calls a rule for all examples of batched tensors
    "function_of_batch": "autograd.batched_function",  # calls an `autograd.Function` inside of `vmap`
    "of_batched": "ops.batching",  # calls a function that reads elements of batched tensors once per example
    "resolved": "ops.bits",  # a tensor without bits
    "sweep": "compiler.sweep",  # `torch.func.sweep`
    "progress": "inspect.bars",  # a bar, or a line where no bar can be drawn
    "pad": "nn.functional.padding",  # a tensor with a border
    "nonfinite": "inspect.finite",  # names the op that made a number which is not finite
    "add_notes": "inspect.mistakes",  # adds notes to an error, and shortens its traceback
    "reduced": "serialization.saving",  # the function and the arguments by which a pickle rebuilds a tensor
    "first_contact": "ops.overrides",  # whether operands have a `__torch_function__` and have not been asked so far
}
_functions: dict[str, Callable[..., Any]] = {}


def supplied(name: str) -> Callable[..., Any]:
    """Return a function that a later module defines; the module is imported when it is first asked for."""
    function = _functions.get(name)
    if function is None:
        function = _functions[name] = getattr(import_module(f"tinytorch.{_MODULES[name]}"), name)
    return function
