"""`torch.sparse`: tensors of which only some elements are stored, in the formats COO and CSR.

- `tensors`: the two classes, `SparseCOO` and `SparseCSR`, and their common interface.
- `rules`: how a function finds its rule for sparse tensors; a function without a rule raises an error that names it.
- `construct`: the constructors, and conversions between layouts.
- `elementwise` `shape` `products` `reductions`: the rules.
- `gradients`: sparse gradients of dense tensors (`nn.Embedding(sparse=True)`).

The formats CSC, BSR and BSC, batches of matrices in the format CSR, and products with batches are left out.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tinytorch.kernels import dtypes
from tinytorch.sparse import shape as _shape  # noqa: F401  (its rules)
from tinytorch.sparse.construct import old_type
from tinytorch.sparse.products import addmm, mm, sampled_addmm
from tinytorch.sparse.reductions import log_softmax, softmax, sum

__all__ = [
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum",
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


def spdiags(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError("torch.sparse.spdiags is not implemented")


def spsolve(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError("torch.sparse.spsolve is not implemented")
