"""Layer normalisation on arrays, in few passes: sums over rows and columns are computed by BLAS.

Each thread takes a part of the rows, a block of them at a time, through all passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from . import blas
from .activation import widened
from .checks import check_floating
from .layouts import arranged
from .native import twin
from .parallel import LARGE, blocks
from .reduce import mean as mean_of
from .reduce import ones, total

Array = Any


def _flat(x: Array, count: int) -> Array:
    """Return `x` as a matrix: each row holds the last `count` dimensions, over which `x` is normalised."""
    shape = x.shape[: x.ndim - count]
    return x.reshape(math.prod(shape), math.prod(x.shape[x.ndim - count :]))


def _by_rows(work: Callable[[slice], None], rows: Array) -> None:
    """Call `work` with blocks of rows that make up the matrix, in several threads if it is large."""
    with blas.one_thread() if rows.size >= LARGE else nullcontext():
        blocks(lambda begin, end: work(slice(begin, end)), *rows.shape)


def _means(x: Array, out: Array | None = None) -> Array:
    """Return the mean of each row, as a column."""
    columns = x.shape[1]
    sums = x.dot(ones(columns, x.dtype))
    return np.divide(sums.reshape(-1, 1), columns, out=out)


def _vector(x: Array | None) -> Array | None:
    return None if x is None else widened(x).reshape(-1)


@twin
def layer_norm(
    x: Array, count: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias`, mean, and `1 / sqrt(variance + eps)`."""
    rows, weight, bias = _flat(widened(x), count), _vector(weight), _vector(bias)
    out = np.empty_like(rows, order="C")
    mean, scale = (np.empty_like(rows, order="C", shape=(len(rows), 1)) for _ in range(2))

    def work(block: slice) -> None:
        centered = np.subtract(rows[block], _means(rows[block], mean[block]), out=out[block])
        factor = np.vecdot(centered, centered, out=scale[block, 0])
        factor /= rows.shape[1]
        factor += eps
        np.sqrt(factor, out=factor)
        np.reciprocal(factor, out=factor)
        centered *= scale[block]
        if weight is not None:
            centered *= weight
        if bias is not None:
            centered += bias

    _by_rows(work, rows)
    kept = x.shape[: x.ndim - count] + (1,) * count
    return out.reshape(x.shape).astype(x.dtype, copy=False), mean.reshape(kept), scale.reshape(kept)


def layer_norm_over(
    x: Array, normalized_shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return the results of `layer_norm` over the last dimensions, which have this shape."""
    check_floating("LayerNormKernelImpl", x)
    return layer_norm(x, len(normalized_shape), weight, bias, eps)


@twin
def layer_norm_grad(
    g: Array, needs: tuple[bool, ...], x: Array, count: int, weight: Array | None, mean: Array, scale: Array
) -> tuple[Array | None, Array | None, Array | None]:
    """Return the gradients of x, weight and bias; None where not needed. Those of weight and bias are not rounded."""
    upstream, rows, weight = _flat(widened(g), count), _flat(widened(x), count), _vector(weight)
    mean, scale = mean.reshape(-1, 1), scale.reshape(-1, 1)
    grad = np.empty_like(rows, order="C") if needs[0] else None
    sums: dict[int, list[Array]] = {}  # by block of rows, the gradients of weight and bias

    def work(block: slice) -> None:
        slope = upstream[block]
        vector = ones(len(slope), rows.dtype)
        of_parameters = sums[block.start] = [None, None]
        if needs[2]:
            of_parameters[1] = vector.dot(slope)
        if not needs[0] and not needs[1]:
            return
        # The normalised rows are `centered * scale`; the gradient is multiplied by the scale instead, once for both.
        centered = rows[block] - mean[block]
        slope = np.multiply(slope, scale[block], out=None if grad is None else grad[block])
        if needs[1]:
            of_parameters[0] = vector.dot(slope * centered)
        if grad is None:
            return
        if weight is not None:
            slope *= weight
        along = np.vecdot(slope, centered).reshape(-1, 1)
        along *= scale[block] * scale[block] / rows.shape[1]
        slope -= _means(slope)
        centered *= along
        slope -= centered

    _by_rows(work, rows)
    normalised = x.shape[x.ndim - count :]
    of_weight, of_bias = (
        sum([sums[start][k] for start in sorted(sums)], np.zeros_like(rows, shape=rows.shape[1])).reshape(normalised)
        if needs[1 + k]
        else None
        for k in (0, 1)
    )
    return None if grad is None else grad.reshape(x.shape).astype(x.dtype, copy=False), of_weight, of_bias


@twin
def rms_norm(x: Array, count: int, weight: Array | None, eps: float) -> tuple[Array, Array]:
    """Return `x * scale * weight` and the scale, `1 / sqrt(mean(x * x) + eps)`, over the last `count` dimensions."""
    scale = mean_of(x * x, tuple(range(x.ndim - count, x.ndim)), keepdims=True)
    scale += eps
    np.sqrt(scale, out=scale)
    np.reciprocal(scale, out=scale)
    out = arranged(x * scale, x)
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
