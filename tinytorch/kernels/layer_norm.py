"""Layer normalisation on arrays, in few passes: sums over rows and columns are left to BLAS (floor 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.kernels.activation import widened
from tinytorch.kernels.reduce import ones

__all__ = ["backward", "forward"]

Array = Any


def _flat(x: Array, count: int) -> Array:
    """Return `x` as a matrix whose rows are what is normalised, the last `count` dimensions."""
    shape = x.shape[: x.ndim - count]
    return x.reshape(math.prod(shape), math.prod(x.shape[x.ndim - count :]))


def _means(x: Array) -> Array:
    """Return the mean of each row, as a column."""
    columns = x.shape[1]
    sums = x.dot(ones(columns, x.dtype))
    sums /= columns
    return sums.reshape(-1, 1)


def forward(
    x: Array, count: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias`, mean, and `1 / sqrt(variance + eps)`."""
    rows = _flat(widened(x), count)
    kept = x.shape[: x.ndim - count] + (1,) * count
    mean = _means(rows)
    out = np.subtract(rows, mean)
    scale = np.vecdot(out, out).reshape(-1, 1)
    scale /= rows.shape[1]
    scale += eps
    np.sqrt(scale, out=scale)
    np.reciprocal(scale, out=scale)
    out *= scale
    if weight is not None:
        out *= widened(weight).reshape(-1)
    if bias is not None:
        out += widened(bias).reshape(-1)
    return out.reshape(x.shape).astype(x.dtype, copy=False), mean.reshape(kept), scale.reshape(kept)


def backward(
    g: Array,
    needs: tuple[bool, ...],
    x: Array,
    count: int,
    weight: Array | None,
    mean: Array,
    scale: Array,
) -> tuple[Array | None, Array | None, Array | None]:
    """Return the gradients of x, weight and bias; None where not needed."""
    shape, dtype = x.shape, x.dtype
    normalised = shape[x.ndim - count :]
    slope, rows = _flat(widened(g), count), _flat(widened(x), count)
    vector = ones(rows.shape[0], rows.dtype)
    grad = of_weight = of_bias = None
    if needs[2]:
        of_bias = vector.dot(slope).reshape(normalised).astype(dtype, copy=False)
    if needs[0] or needs[1]:
        # What is normalised is `distance * scale`; the gradient takes the scale instead, which both need once.
        column = scale.reshape(-1, 1)
        distance = np.subtract(rows, mean.reshape(-1, 1))
        slope = np.multiply(slope, column)
    if needs[1]:
        of_weight = vector.dot(slope * distance).reshape(normalised).astype(dtype, copy=False)
    if needs[0]:
        if weight is not None:
            slope *= widened(weight).reshape(-1)
        along = np.vecdot(slope, distance).reshape(-1, 1)
        along *= column * column / rows.shape[1]
        slope -= _means(slope)
        distance *= along
        slope -= distance
        grad = slope.reshape(shape).astype(dtype, copy=False)
    return grad, of_weight, of_bias
