"""What a saved program calls besides the kernels of its operations: promotion of NumPy's dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels import dtypes

__all__ = ["category", "checked", "promoted", "result_dtype"]


def checked(name: str, argument: str, position: int, dtype: Any) -> Any:
    """Return an argument that is a dtype, or Python's class of numbers, as NumPy's dtype."""
    return np.dtype(dtype)


def category(dtype: Any) -> int:
    """Return the category of a NumPy dtype in promotion: 0 for booleans, 1 for integers, 2 for floats."""
    return dtypes.from_numpy_dtype(dtype).category


def promoted(a: Any, b: Any) -> Any:
    """Return `dtypes.promote_types` of NumPy's dtypes."""
    return dtypes.promote_types(dtypes.from_numpy_dtype(a), dtypes.from_numpy_dtype(b)).numpy


def result_dtype(*operands: tuple[Any, int]) -> Any:
    """Return `dtypes.result_dtype` of NumPy's dtypes."""
    return dtypes.result_dtype(*[(dtypes.from_numpy_dtype(dtype), rank) for dtype, rank in operands]).numpy
