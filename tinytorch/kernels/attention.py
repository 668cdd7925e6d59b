"""Scaled dot-product attention on arrays."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .activation import widened
from .checks import tensor_name
from .dtypes import FLOATS
from .native import twin
from .products import product

Array = Any


@functools.lru_cache(maxsize=16)
def causal(length: int, keys: int) -> Array:
    """Return the mask of keys (columns) that each query (row) may attend to: those up to the query's position."""
    return np.tri(length, keys, dtype=np.bool_)


def _matrices(x: Array) -> Array:
    """Return `x`, copied if BLAS cannot read matrices with its strides."""
    row, column = x.strides[-2:]
    return x if column == x.itemsize and row >= column * x.shape[-1] else x.copy()


def _spread(x: Array, batch: tuple[int, ...]) -> Array:
    """Return matrices broadcast to the shape of the batch."""
    shape = (*batch, *x.shape[-2:])
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _in_rows(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an empty array (B, H, L, E) with the memory layout (B, L, H, E), in which joining the heads is a view."""
    if len(shape) != 4:
        return np.empty_like(x, shape=shape)
    batch, heads, length, features = shape
    return np.empty_like(x, shape=(batch, length, heads, features), order="C").swapaxes(1, 2)


def _softmax(scores: Array, bias: Array | None, scale: float) -> None:
    """Overwrite scores with `softmax(scores * scale + bias)` along the last dimension; rows of -inf become zeros."""
    scores *= scale
    if bias is not None:
        scores += bias
    highest = np.maximum.reduce(scores, -1, keepdims=True, initial=-math.inf)
    highest[highest == -math.inf] = 0  # a query that may attend to nothing
    scores -= highest
    np.exp(scores, out=scores)
    # (A product with ones takes a third of the time of `np.add.reduce`.)
    keys = scores.shape[-1]
    sums = scores.reshape(highest.size, keys).dot(np.ones(keys, scores.dtype)).reshape(highest.shape)
    sums[sums == 0] = 1  # the weights of such a query are zeros, not 0 / 0
    scores /= sums


@twin
def attend(
    query: Array, key: Array, value: Array, keep: Array | None, is_causal: bool, scale: float, weights: Array,
    out: Array, mask: Array | None,
) -> None:  # fmt: skip
    """Write the softmax of the scores into `weights`, and its product with the values into `out`.

    All are matrices with the same leading dimensions, to which a mask broadcasts; arguments as of `attention`.
    (With `is_causal`, it is undefined whether a NaN after a query's position affects the query's result.)
    """
    bias = causal(*weights.shape[-2:]) if is_causal else mask
    if bias is not None:
        if bias.dtype.kind == "b":
            bias = np.where(bias, weights.dtype.type(0), weights.dtype.type(-math.inf))
        bias = widened(bias)
    product(query, key.swapaxes(-1, -2), out=weights)
    _softmax(weights, bias, scale)
    product(weights if keep is None else weights * keep, value, out=out)


def attention(
    query: Array, key: Array, value: Array, attn_mask: Array | None, keep: Array | None, is_causal: bool, scale: float
) -> tuple[Array, Array]:
    """Return `softmax(query @ key.T * scale + attn_mask) * keep @ value`, and the softmax.

    Args:
        query, key, value: matrices (*, L, E), (*, S, E), (*, S, Ev), of which the leading dimensions broadcast.
        attn_mask: added to the scores, or booleans (False: no attention); broadcasts to (*, L, S).
        keep: factors of the weights (*, L, S), from dropout.
        is_causal: whether a query attends only to the keys up to its position.
        scale: factor of the scores.
    """
    dtype = query.dtype
    if dtype.kind not in FLOATS:
        raise RuntimeError(f"expected scalar type Float but found {tensor_name(query)}")
    q, k, v = (_matrices(widened(x)) for x in (query, key, value))
    length, keys = q.shape[-2], k.shape[-2]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (_spread(x, batch) for x in (q, k, v))
    weights = np.empty_like(q, shape=(*batch, length, keys), order="C")
    same = keep is None and v.shape[-1] == q.shape[-1]
    shape = (*batch, length, v.shape[-1])
    # The result has the memory layout of the query: if the heads are split features, joining them is a view.
    like_query = same and len(batch) == 2 and query.shape == shape and 0 not in q.strides
    out = np.empty_like(q, shape=shape, order="K" if like_query else "C")

    attend(q, k, v, keep, is_causal, float(scale), weights, out, attn_mask)
    return out.astype(dtype, copy=False), weights


@twin
def attend_grad(
    query: Array, key: Array, value: Array, keep: Array | None, is_causal: bool, scale: float, weights: Array,
    out: Array | None, g: Array, of_query: Array | None, of_key: Array | None, of_value: Array | None,
    of_mask: Array | None,
) -> None:  # fmt: skip
    """Write the gradients of query, key, value and mask into the arrays that are not None.

    The gradient of a softmax subtracts a sum over the keys, which equals the sum of `g * out` over the features; the
    latter is used unless `out` is None, because it was rounded to 16 bits. (`is_causal` is for the native twin: it
    skips the weights that are 0.)
    """
    if of_value is not None:
        product((weights if keep is None else weights * keep).swapaxes(-1, -2), g, out=of_value)
    if of_query is of_key is of_mask is None:
        return
    slope = product(g, value.swapaxes(-1, -2))
    if keep is not None:
        slope *= keep
    slope -= np.add.reduce(slope * weights if out is None else g * out, -1, keepdims=True)
    slope *= weights
    if of_mask is not None:
        of_mask[...] = slope
    slope *= scale
    if of_query is not None:
        product(slope, key, out=of_query)
    if of_key is not None:
        product(slope.swapaxes(-1, -2), query, out=of_key)


def attention_grad(
    g: Array, needs: tuple[bool, ...], query: Array, key: Array, value: Array, keep: Array | None, is_causal: bool,
    scale: float, weights: Array, out: Array,
) -> list[Array | None]:  # fmt: skip
    """Return the gradients of query, key, value and mask, for the whole batch; None where not needed."""
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
