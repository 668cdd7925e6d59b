"""Indices where NumPy's own integers, `numpy.intp`, have 32 bits: on 32-bit processors and in browsers.

An index is int64 here as in PyTorch. NumPy finds and takes indices of the processor's size: where that is 32 bits,
`argmax` returns int32, and `take` refuses int64. So kernels pass what NumPy found through `as_int64` if it is a
result, and what `take`, `put`, `repeat`, `bincount`, `choose` and `reduceat` get through `as_intp`. On processors of
64 bits both return their argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_int64", "as_intp"]

_INT64 = np.dtype(np.int64)
_INTP = np.dtype(np.intp)

if _INTP == _INT64:

    def as_int64(indices: Any) -> Any:
        """Return an array of indices that NumPy found as int64."""
        return indices

    def as_intp(indices: Any) -> Any:
        """Return an array of integers as NumPy takes indices."""
        return indices

else:

    def as_int64(indices: Any) -> Any:
        """Return an array of indices that NumPy found as int64."""
        return indices.astype(_INT64, copy=False)

    def as_intp(indices: Any) -> Any:
        """Return an array of integers as NumPy takes indices.

        Raises:
            IndexError: one of them is larger than any index can be.
        """
        if np.can_cast(indices.dtype, _INTP):
            return indices
        short = indices.astype(_INTP)
        if type(indices) is np.ndarray and not np.array_equal(short, indices):
            raise IndexError("index out of range: this Python has indices of 32 bits")
        return short
