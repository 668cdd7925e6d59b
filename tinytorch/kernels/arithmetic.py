"""Arithmetic of two or three arrays that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels.native import twin

__all__ = ["add", "addcmul", "divide", "multiply", "subtract"]

Array = Any

# Their definition is the ufunc itself; without the native library they are the ufunc.
add = twin(np.add)
subtract = twin(np.subtract)
multiply = twin(np.multiply)
divide = twin(np.true_divide)


@twin
def addcmul(x: Array, a: Array, b: Array, value: float) -> Array:
    """Return `x + value * a * b`."""
    return x + (a * b if value == 1 else value * a * b)
