"""Whether algorithms have to be deterministic: all are, but then new memory has the same contents each time, too."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.kernels.dtypes import FLOATS, from_numpy_dtype
from tinytorch.kernels.limits import limits_of
from tinytorch.kernels.meta import is_meta

__all__ = ["fills", "mode", "unwritten"]

#: The mode of `torch.use_deterministic_algorithms`, and whether it only warns.
mode = [False, False]
#: `torch.utils.deterministic.fill_uninitialized_memory`.
fills = [True]


def unwritten(array: Any) -> Any:
    """Return new memory for a user; in that mode it is filled with NaN, or with the greatest integer."""
    if mode[0] and fills[0] and not is_meta(array):
        floating = array.dtype.kind in (*FLOATS, "c")
        array[...] = math.nan if floating else limits_of(from_numpy_dtype(array.dtype))[1]
    return array
