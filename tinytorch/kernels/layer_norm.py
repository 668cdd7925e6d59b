"""Layer normalisation and root-mean-square normalisation on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .activation import widened
from .checks import check_floating
from .layouts import arranged
from .native import twin
from .reduce import in_rows, total
from .reduce import mean as mean_of

Array = Any


@twin
def layer_norm(
    x: Array, count: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias`, mean, and `1 / sqrt(variance + eps)`.

    Mean and variance are over the last `count` dimensions, which they keep.
    """
    rows, axes = in_rows(widened(x)), tuple(range(x.ndim - count, x.ndim))
    mean = mean_of(rows, axes, keepdims=True)
    out = rows - mean
    scale = 1 / np.sqrt(mean_of(np.square(out), axes, keepdims=True) + eps)
    out *= scale
    if weight is not None:
        out *= widened(weight)
    if bias is not None:
        out += widened(bias)
    return out.astype(x.dtype, copy=False), mean, scale


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
    first = x.ndim - count
    lead, axes = tuple(range(first)), tuple(range(first, x.ndim))
    upstream, centered = in_rows(widened(g)), in_rows(widened(x)) - mean
    slope = upstream * scale
    of_weight = total(slope * centered, lead) if needs[1] else None
    of_bias = total(upstream, lead) if needs[2] else None
    if not needs[0]:
        return None, of_weight, of_bias
    if weight is not None:
        slope *= widened(weight)
    along = mean_of(slope * centered, axes, keepdims=True) * (scale * scale)
    slope -= mean_of(slope, axes, keepdims=True)
    slope -= centered * along
    return slope.astype(x.dtype, copy=False), of_weight, of_bias


@twin
def rms_norm(x: Array, count: int, weight: Array | None, eps: float) -> tuple[Array, Array]:
    """Return `x * scale * weight` and the scale, `1 / sqrt(mean(x * x) + eps)`, over the last `count` dimensions."""
    scale = 1 / np.sqrt(mean_of(x * x, tuple(range(x.ndim - count, x.ndim)), keepdims=True) + eps)
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
