"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels.native import twin
from tinytorch.kernels.reduce import add_to_rows

__all__ = ["linear", "product"]

Array = Any

#: Multiplications below which a product of matrices is left to BLAS; equal to MIN_PRODUCT of native/native.h.
SMALL = 1 << 15


@twin
def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return the product of float matrices (m, k) and (k, n) with any strides, of vectors, or of stacks of matrices.

    Args:
        a, b: the factors. Leading dimensions broadcast.
        out: takes the result, and shares no memory with the factors.
    """
    if a.ndim < 3 > b.ndim and (out is None or out.flags.c_contiguous):
        # One call of BLAS, without a copy of transposed views. (`dot` treats a matrix of one zero as a scalar factor,
        # which turns infinities into 0 instead of NaN.)
        return a.dot(b, out=out) if a.size != 1 != b.size else np.matmul(a, b, out=out)
    return np.matmul(_regular(a), _regular(b), out=out)


def _regular(a: Array) -> Array:
    """Return `a`, copied if BLAS cannot read its strides (NumPy's loop for these is many times slower)."""
    row, column = a.strides[-2:]
    size = a.itemsize
    if (column == size and row >= size * a.shape[-1]) or (row == size and column >= size * a.shape[-2]):
        return a
    return a.copy() if a.size > 256 else a


@twin
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return `x weight.T + bias` of matrices (m, k) and (n, k) of floats; the bias broadcasts to (n,), or is None."""
    out = product(x, weight.T)
    if bias is not None:
        add_to_rows(out, bias)
    return out
