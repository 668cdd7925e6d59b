"""Layer normalisation on arrays, in few passes: sums over rows and columns are left to BLAS.

Of large arrays each thread takes a part of the rows, a block of them at a time, through all passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.kernels import blas
from tinytorch.kernels.activation import widened
from tinytorch.kernels.native import twin
from tinytorch.kernels.parallel import LARGE, blocks
from tinytorch.kernels.reduce import mean as mean_of
from tinytorch.kernels.reduce import ones, total

Array = Any

_SHARED = 2 * LARGE  # elements from which on rows are shared among threads


def _flat(x: Array, count: int) -> Array:
    """Return `x` as a matrix whose rows are what is normalised, the last `count` dimensions."""
    shape = x.shape[: x.ndim - count]
    return x.reshape(math.prod(shape), math.prod(x.shape[x.ndim - count :]))


def _by_rows(work: Callable[[slice], None], rows: Array) -> None:
    """Call `work` with blocks of rows that make up all, in several threads."""
    with blas.one_thread():
        blocks(lambda begin, end: work(slice(begin, end)), *rows.shape)


def _means(x: Array) -> Array:
    """Return the mean of each row, as a column."""
    columns = x.shape[1]
    sums = x.dot(ones(columns, x.dtype))
    sums /= columns
    return sums.reshape(-1, 1)


def _vector(x: Array | None) -> Array | None:
    return None if x is None else widened(x).reshape(-1)


@twin
def layer_norm(
    x: Array, count: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias`, mean, and `1 / sqrt(variance + eps)`."""
    rows, weight, bias = _flat(widened(x), count), _vector(weight), _vector(bias)
    if rows.size < _SHARED or type(rows) is not np.ndarray:
        out, mean, scale = _forward(rows, weight, bias, eps)
    else:
        out = np.empty_like(rows, order="C")
        mean, scale = (np.empty_like(rows, order="C", shape=(len(rows), 1)) for _ in range(2))

        def work(some: slice) -> None:
            _, mean[some], scale[some] = _forward(rows[some], weight, bias, eps, out[some])

        _by_rows(work, rows)
    kept = x.shape[: x.ndim - count] + (1,) * count
    return out.reshape(x.shape).astype(x.dtype, copy=False), mean.reshape(kept), scale.reshape(kept)


def _forward(
    rows: Array, weight: Array | None, bias: Array | None, eps: float, out: Array | None = None
) -> tuple[Array, Array, Array]:
    mean = _means(rows)
    out = np.subtract(rows, mean, out=out)
    scale = np.vecdot(out, out).reshape(-1, 1)
    scale /= rows.shape[1]
    scale += eps
    np.sqrt(scale, out=scale)
    np.reciprocal(scale, out=scale)
    out *= scale
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, mean, scale


@twin
def layer_norm_grad(
    g: Array, needs: tuple[bool, ...], x: Array, count: int, weight: Array | None, mean: Array, scale: Array
) -> tuple[Array | None, Array | None, Array | None]:
    """Return the gradients of x, weight and bias; None where not needed. The sums stay wide: parameters may be, too."""
    slope, rows, weight = _flat(widened(g), count), _flat(widened(x), count), _vector(weight)
    mean, scale = mean.reshape(-1, 1), scale.reshape(-1, 1)
    if rows.size < _SHARED or type(rows) is not np.ndarray:
        grad, of_weight, of_bias = _backward(slope, needs, rows, weight, mean, scale)
    else:
        whole = np.empty_like(rows, order="C")
        sums: dict[int, tuple[Array, Array]] = {}

        def work(some: slice) -> None:
            parts = (each[some] for each in (mean, scale, whole))
            _, *of_vectors = _backward(slope[some], needs, rows[some], weight, *parts)
            sums[some.start] = of_vectors[0], of_vectors[1]

        _by_rows(work, rows)
        grad = whole if needs[0] else None
        of_weight, of_bias = (
            np.add.reduce([sums[at][each] for at in sorted(sums)]) if needs[1 + each] else None for each in (0, 1)
        )
    normalised = x.shape[x.ndim - count :]
    return (
        None if grad is None else grad.reshape(x.shape).astype(x.dtype, copy=False),
        None if of_weight is None else of_weight.reshape(normalised),
        None if of_bias is None else of_bias.reshape(normalised),
    )


def _backward(
    slope: Array, needs: tuple[bool, ...], rows: Array, weight: Array | None, mean: Array, scale: Array,
    out: Array | None = None,
) -> tuple[Array | None, Array | None, Array | None]:  # fmt: skip
    vector = ones(rows.shape[0], rows.dtype)
    of_weight = of_bias = None
    if needs[2]:
        of_bias = vector.dot(slope)
    if needs[0] or needs[1]:
        # What is normalised is `distance * scale`; the gradient takes the scale instead, which both need once.
        distance = np.subtract(rows, mean)
        slope = np.multiply(slope, scale, out=out)
    if needs[1]:
        of_weight = vector.dot(slope * distance)
    if not needs[0]:
        return None, of_weight, of_bias
    if weight is not None:
        slope *= weight
    along = np.vecdot(slope, distance).reshape(-1, 1)
    along *= scale * scale / rows.shape[1]
    slope -= _means(slope)
    distance *= along
    slope -= distance
    return slope, of_weight, of_bias


@twin
def rms_norm(x: Array, count: int, weight: Array | None, eps: float) -> tuple[Array, Array]:
    """Return `x * scale * weight` and the scale, `1 / sqrt(mean(x * x) + eps)`, over the last `count` dimensions."""
    scale = mean_of(x * x, tuple(range(x.ndim - count, x.ndim)), keepdims=True)
    scale += eps
    np.sqrt(scale, out=scale)
    np.reciprocal(scale, out=scale)
    out = x * scale
    if weight is not None:
        out *= weight
    return out, scale


@twin
def rms_norm_grad(
    g: Array, needs: tuple[bool, ...], x: Array, count: int, weight: Array | None, scale: Array
) -> tuple[Array | None, Array | None]:
    """Return the gradients of x and weight; None where not needed."""
    first = x.ndim - count
    grad = of_weight = None
    if needs[0]:
        slope = g if weight is None else g * weight
        along = mean_of(slope * x, tuple(range(first, x.ndim)), keepdims=True) * scale**3
        grad = slope * scale - x * along
    if needs[1]:
        of_weight = g * x * scale
        if first:
            of_weight = total(of_weight, tuple(range(first)))
    return grad, of_weight
