"""`torch.sparse`: tensors of which only some elements are stored, in the formats COO, CSR, CSC, BSR and BSC.

- `tensors`: the two classes, `SparseCOO` and `SparseCompressed` (the other four formats), and their common interface.
- `rules`: how a function finds its rule for sparse tensors, when reading `_array` of one has raised `NoArray`; a
  function without a rule raises an error that names it.
- `construct`: the constructors, and conversions between layouts.
- `elementwise` `shape` `products` `reductions`: the rules.
- `gradients`: sparse gradients of dense tensors (`nn.Embedding(sparse=True)`), and those that a user passes.
- `invariants`: the switch `check_sparse_tensor_invariants`.

Products with batches in the compressed formats, as in PyTorch on the CPU, and sparse tensors on the meta device are
left out.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tinytorch.kernels import dtypes
from tinytorch.sparse import shape as _shape  # noqa: F401  (its rules)
from tinytorch.sparse.construct import old_type, spdiags
from tinytorch.sparse.invariants import check_sparse_tensor_invariants
from tinytorch.sparse.products import addmm, mm, sampled_addmm
from tinytorch.sparse.reductions import log_softmax, softmax, sum

__all__ = [
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
    "softmax", "spdiags", "spsolve", "sum",
]  # fmt: skip

BFloat16Tensor = old_type(dtypes.bfloat16)
ByteTensor = old_type(dtypes.uint8)
CharTensor = old_type(dtypes.int8)
DoubleTensor = old_type(dtypes.float64)
FloatTensor = old_type(dtypes.float32)
HalfTensor = old_type(dtypes.float16)
IntTensor = old_type(dtypes.int32)
LongTensor = old_type(dtypes.int64)
ShortTensor = old_type(dtypes.int16)


def spsolve(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError("torch.sparse.spsolve is not implemented")
