"""Scaled dot-product attention on arrays, a part of the batch at a time.

The products of a head are small matrices, the scores of all heads together a large array: so each part goes through
all steps while it is in the processor's cache, and large batches are shared among threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.kernels.activation import widened
from tinytorch.kernels.native import twin
from tinytorch.kernels.parallel import blocks
from tinytorch.kernels.products import product
from tinytorch.kernels.reduce import ones

Array = Any


@functools.lru_cache(maxsize=16)
def causal(length: int, keys: int) -> Array:
    """Return which keys (columns) each query (row) may attend to: those up to its own place."""
    return np.tri(length, keys, dtype=np.bool_)


def _matrices(x: Array) -> Array:
    """Return `x`, copied if BLAS cannot read its matrices as they lie."""
    row, column = x.strides[-2:]
    return x if column == x.itemsize and row >= column * x.shape[-1] else x.copy()


def _spread(x: Array, batch: tuple[int, ...]) -> Array:
    """Return matrices broadcast to the shape of the batch."""
    shape = (*batch, *x.shape[-2:])
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _by_parts(work: Callable[[Any], None], weights: Array) -> None:
    """Call `work` with slices of the first dimension of the batch, in several threads where there are many scores."""
    if weights.ndim > 2:
        length = weights.shape[0]
        blocks(lambda begin, end: work(slice(begin, end)), length, weights.size // max(length, 1), cost=4)
    else:
        work(...)


def _in_rows(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an empty array of shape (B, H, L, E) that lies in memory as (B, L, H, E): so the heads join at no cost."""
    if len(shape) != 4:
        return np.empty_like(x, shape=shape)
    batch, heads, length, features = shape
    return np.empty_like(x, shape=(batch, length, heads, features), order="C").swapaxes(1, 2)


def _softmax(part: Array, bias: Array | None, scale: float) -> None:
    """Turn scores into `softmax(part * scale + bias)` along the last dimension; a row of -inf into zeros."""
    part *= scale
    if bias is not None:
        part += bias
    highest = np.maximum.reduce(part, -1, keepdims=True, initial=-math.inf)
    highest[highest == -math.inf] = 0  # a query that may attend to nothing
    part -= highest
    np.exp(part, out=part)
    # (Sums by BLAS take a third of the time of `np.add.reduce`.)
    sums = part.reshape(highest.size, part.shape[-1]).dot(ones(part.shape[-1], part.dtype)).reshape(highest.shape)
    sums[sums == 0] = 1  # its weights are zeros, not 0 / 0
    part /= sums


@twin
def attend(
    query: Array,
    key: Array,
    value: Array,
    keep: Array | None,
    is_causal: bool,
    scale: float,
    weights: Array,
    out: Array,
    mask: Array | None,
) -> None:
    """Write the softmax of the scores, and what it makes of the values.

    All are matrices with the same leading dimensions, to which a mask broadcasts; the arguments are those of `forward`.
    (Where `is_causal`, a NaN beyond a query's own place may show in its result, or not.)
    """
    kt = key.swapaxes(-1, -2)
    bias = causal(*weights.shape[-2:]) if is_causal else mask
    if bias is not None:
        if bias.dtype.kind == "b":
            bias = np.where(bias, weights.dtype.type(0), weights.dtype.type(-math.inf))
        bias = np.broadcast_to(widened(bias), weights.shape)

    def work(some: Any) -> None:
        part = weights[some]
        product(query[some], kt[some], out=part)
        _softmax(part, None if bias is None else bias[some], scale)
        product(part if keep is None else part * keep[some], value[some], out=out[some])

    _by_parts(work, weights)


def forward(
    query: Array, key: Array, value: Array, mask: Array | None, keep: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """Return `softmax(query @ key.T * scale + mask) * keep @ value`, and the softmax.

    Args:
        query, key, value: matrices (*, L, E), (*, S, E), (*, S, Ev), of which the leading dimensions broadcast.
        mask: what is added, or booleans (False: no attention); broadcasts to (*, L, S).
        keep: factors of the weights (*, L, S), from dropout.
        is_causal: whether a query attends to the keys up to its own place only.
        scale: factor of the scores.
    """
    dtype = query.dtype
    q, k, v = (_matrices(widened(x)) for x in (query, key, value))
    length, keys = q.shape[-2], k.shape[-2]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (_spread(x, batch) for x in (q, k, v))
    weights = np.empty_like(q, shape=(*batch, length, keys), order="C")
    same = keep is None and v.shape[-1] == q.shape[-1]
    shape = (*batch, length, v.shape[-1])
    # It lies in memory as the query does: in rows, where the heads are a dimension of the features.
    like_query = same and query.shape == shape and 0 not in q.strides
    out = np.empty_like(q, shape=shape, order="K" if like_query else "C")

    attend(q, k, v, keep, is_causal, float(scale), weights, out, mask)
    return out.astype(dtype, copy=False), weights


@twin
def attend_grad(
    query: Array,
    key: Array,
    value: Array,
    keep: Array | None,
    is_causal: bool,
    scale: float,
    weights: Array,
    out: Array | None,
    g: Array,
    of_query: Array | None,
    of_key: Array | None,
    of_value: Array | None,
    of_mask: Array | None,
) -> None:
    """Write the gradients that are asked for, given that of `out`, which is None where it has been rounded.

    The gradient of a softmax subtracts a sum over the keys; it is that of `g * out` over the features, too.
    (`is_causal` tells the twin of zeros among the weights.)
    """
    vt = value.swapaxes(-1, -2)

    def work(some: Any) -> None:
        part, upstream = weights[some], g[some]
        if of_value is not None:
            kept = part if keep is None else part * keep[some]
            product(kept.swapaxes(-1, -2), upstream, out=of_value[some])
        if of_query is of_key is of_mask is None:
            return
        slope = product(upstream, vt[some])
        if keep is not None:
            slope *= keep[some]
        slope -= np.add.reduce(slope * part if out is None else upstream * out[some], -1, keepdims=True)
        slope *= part
        if of_mask is not None:
            of_mask[some] = slope
        slope *= scale
        if of_query is not None:
            product(slope, key[some], out=of_query[some])
        if of_key is not None:
            product(slope.swapaxes(-1, -2), query[some], out=of_key[some])

    _by_parts(work, weights)


def backward(
    g: Array,
    needs: tuple[bool, ...],
    query: Array,
    key: Array,
    value: Array,
    keep: Array | None,
    is_causal: bool,
    scale: float,
    weights: Array,
    out: Array,
) -> list[Array | None]:
    """Return the gradients of query, key, value and mask, of the shape of the whole batch; None where not needed."""
    dtype = query.dtype
    q, k, v, g, out = (_matrices(widened(x)) for x in (query, key, value, g, out))
    batch = weights.shape[:-2]
    shapes = [(*batch, *x.shape[-2:]) for x in (q, k, v)]
    grads: list[Any] = [_in_rows(q, shape) if need else None for shape, need in zip(shapes, needs, strict=False)]
    grads.append(np.empty_like(weights) if needs[3] else None)
    q, k, v = (_spread(x, batch) for x in (q, k, v))
    rounded = dtype.itemsize == 2
    attend_grad(q, k, v, keep, is_causal, float(scale), weights, None if rounded else out, g, *grads)
    return [None if grad is None else grad.astype(dtype, copy=False) for grad in grads]
