"""Arithmetic of two arrays, of one shape or of two, and of three."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels.native import twin

__all__ = ["add", "addcmul", "divide", "multiply", "subtract"]

Array = Any

# What defines these is the ufunc itself, which they are where there is no library.
add = twin(np.add)
subtract = twin(np.subtract)
multiply = twin(np.multiply)
divide = twin(np.true_divide)


@twin
def addcmul(x: Array, a: Array, b: Array, value: float) -> Array:
    """Return `x + value * a * b`."""
    return x + (a * b if value == 1 else value * a * b)
