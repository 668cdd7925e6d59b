"""Activation functions on arrays, and the selection by a mask that they need (floor 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.kernels import special

__all__ = [
    "choose", "elu", "elu_grad", "gelu", "hardswish", "keep", "leaky_relu", "log_sigmoid", "log_softmax",
    "mish", "relu", "sigmoid", "silu", "softmax", "softplus", "widened",
]  # fmt: skip

Array = Any


def widened(x: Array) -> Array:
    """Return 16-bit floats as float32, in which PyTorch computes too; others unchanged."""
    kind = x.dtype
    return x.astype(np.float32) if kind.itemsize == 2 and kind.kind not in "iu" else x


# Selecting ----------------------------------------------------------------------------------------
# `np.where` jumps at every change of the mask: on random signs it takes five to fifteen times as long
# as selecting by bits. (To multiply by the mask is as fast, but makes -0.0 of negative numbers and
# NaN of infinities.)


def _bits(mask: Array, dtype: Any) -> Array:
    """Return integers of all bits where `mask` holds, of none elsewhere, as wide as `dtype`."""
    ones = mask.view(np.int8)
    return np.negative(ones).astype(f"i{dtype.itemsize}")


def keep(x: Array, mask: Array) -> Array:
    """Return `np.where(mask, x, 0)`; `mask` has the shape of `x`."""
    bits = _bits(mask, x.dtype)
    bits &= x.view(bits.dtype)
    return bits.view(x.dtype)


def choose(mask: Array, x: Array, y: Array) -> Array:
    """Return `np.where(mask, x, y)` of arrays of the same shape and dtype."""
    bits = _bits(mask, x.dtype)
    other = y.view(bits.dtype)
    bits &= x.view(bits.dtype) ^ other
    bits ^= other
    return bits.view(x.dtype)


# Rectifiers ---------------------------------------------------------------------------------------


def relu(x: Array) -> Array:
    """Return max(x, 0)."""
    # NumPy compares with an array of zeros three times as fast as with the number 0.
    return np.maximum(x, np.zeros(x.shape, x.dtype, like=x))


def leaky_relu(x: Array, slope: float) -> Array:
    """Return x where it is positive, slope * x elsewhere."""
    low = x * slope
    if 0 < slope <= 1:
        return np.maximum(x, low)
    return choose(x > 0, x, low)


def elu(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """Return scale * x where x > 0, elsewhere scale * alpha * (exp(input_scale * x) - 1)."""
    low = np.minimum(x, 0) * input_scale  # no overflow where it is not wanted
    low = np.expm1(low)
    low *= alpha * scale
    return choose(x > 0, x * scale, low)


def elu_grad(g: Array, x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """Return g times the derivative of `elu`."""
    low = np.minimum(x, 0) * input_scale
    low = np.exp(low)
    low *= alpha * scale * input_scale
    return choose(x <= 0, g * low, g * scale)


def hardswish(x: Array) -> Array:
    """Return x * clip(x + 3, 0, 6) / 6."""
    factor = np.clip(x + 3, 0, 6)
    factor *= x
    factor /= 6
    return factor


# Smooth ones --------------------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); exp may overflow to infinity, which gives the right 0."""
    out = np.exp(-x)
    out += 1
    return 1 / out


def silu(x: Array) -> Array:
    """Return x * sigmoid(x) = x / (1 + exp(-x))."""
    divisor = np.exp(-x)
    divisor += 1
    return x / divisor


def log_sigmoid(x: Array) -> Array:
    """Return log(sigmoid(x)) as min(x, 0) - log(1 + exp(-|x|)), where nothing overflows."""
    out = np.log1p(np.exp(-np.abs(x)))
    return np.minimum(x, 0) - out


def softplus(x: Array, beta: float, threshold: float) -> Array:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    scaled = x * beta
    out = np.log1p(np.exp(np.minimum(scaled, threshold)))
    out /= beta
    return choose(scaled > threshold, x, out)


def mish(x: Array) -> Array:
    """Return x * tanh(log(1 + exp(x)))."""
    return x * np.tanh(np.log1p(np.exp(np.minimum(x, 30))))  # from 30 on the factor is 1


def gelu(x: Array, approximate: str) -> Array:
    """Return x * Phi(x), with the normal distribution's Phi or its approximation by tanh."""
    if approximate == "tanh":
        inner = x * x
        inner *= 0.044715 * math.sqrt(2 / math.pi)
        inner += math.sqrt(2 / math.pi)
        inner *= x
        out = np.tanh(inner)
    else:
        out = special.erf(x * math.sqrt(0.5))
    out += 1
    out *= 0.5
    return out * x


# Normalised exponentials --------------------------------------------------------------------------


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) / sum(exp(x)) along `axis`; less the maximum, so that nothing overflows."""
    if x.size == 0 or x.ndim == 0:
        return x - x + 1
    wide = widened(x)
    out = np.subtract(wide, np.maximum.reduce(wide, axis, keepdims=True))
    np.exp(out, out=out)
    out /= np.add.reduce(out, axis, keepdims=True)
    return out.astype(x.dtype, copy=False)


def log_softmax(x: Array, axis: int) -> Array:
    """Return x - log(sum(exp(x))) along `axis`, computed as `softmax` is."""
    if x.size == 0 or x.ndim == 0:
        return x - x
    wide = widened(x)
    out = np.subtract(wide, np.maximum.reduce(wide, axis, keepdims=True))
    out -= np.log(np.add.reduce(np.exp(out), axis, keepdims=True))
    return out.astype(x.dtype, copy=False)


def tanh_slope(g: Array, out: Array) -> Array:
    """Return `g * (1 - out * out)`, the gradient through tanh."""
    slope = np.multiply(out, out)
    if slope.ndim == 0 or slope.shape != g.shape or slope.dtype != g.dtype:
        return g * (1 - slope)
    np.subtract(1, slope, out=slope)
    return np.multiply(slope, g, out=slope)


def minus_twice(x: Array, y: Array) -> Array:
    """Return `-2 * x * y`."""
    out = x * y
    if out.ndim == 0:
        return out * -2
    out *= -2
    return out
