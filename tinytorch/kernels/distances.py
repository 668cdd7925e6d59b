"""Distances between tensors, and between the rows of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .native import twin
from .products import product
from .reduce import in_rows, norm


def dist(x: Any, y: Any, p: float) -> Any:
    """Return the p-norm of `x - y`."""
    return norm(x - y, p, None, False)


def euclidean(x: Any, y: Any) -> Any:
    """Return the distances by one matrix product, `[-2x | |x|^2 | 1] [y | 1 | |y|^2].T`."""
    x_squares, y_squares = (np.square(a).dot(np.ones(a.shape[-1], a.dtype))[..., None] for a in (x, y))
    a = np.concatenate((-2 * x, x_squares, np.ones_like(x_squares)), -1)
    b = np.concatenate((y, np.ones_like(y_squares), y_squares), -1)
    squares = product(a, b.swapaxes(-1, -2))
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


@twin
def cdist(x: Any, y: Any, p: float) -> Any:
    """Return the p-norms of the differences of all pairs of rows."""
    differences = x[..., :, None, :] - y[..., None, :, :]
    if not differences.size:
        return np.zeros_like(differences, shape=differences.shape[:-1])
    return in_rows(norm(differences, p, (differences.ndim - 1,), False))
