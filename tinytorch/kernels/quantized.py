"""Products with numbers of few bits: linear layers with weights of 8 or 16 bits, and products of matrices of bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import dtypes
from .checks import tensor_name as _name
from .meta import is_meta
from .native import twin
from .products import product

Array = Any

#: Weights that are widened to float32 at a time.
_BLOCK = 1 << 20
#: Terms of a sum of products of two bytes that is exact in float32: 255 * 128 * 512 < 2**24.
_EXACT_TERMS = 512
#: The largest 8-bit weight. Its negative is the smallest: -128 is not used, so that the weights are symmetric.
_LARGEST = 127


# Linear layers ------------------------------------------------------------------------------------


def _widened(weight: Array) -> Array:
    """Return weights as float32; uint16 holds the bits of bfloat16, for which NumPy has no dtype."""
    if weight.dtype == np.uint16:
        return (weight.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return weight.astype(np.float32)


@twin
def widening_linear(x: Array, weight: Array, scale: Array | None, bias: Array | None) -> Array:
    """Return `(x weight.T) * scale + bias`, computed in float32.

    Args:
        x: (m, k), float32.
        weight: (n, k), of int8, of float16, or of uint16 that holds the bits of bfloat16. It is widened in parts, so
            that the whole weight never exists in float32.
        scale, bias: (n,), float32, or None.
    """
    out = np.empty_like(x, shape=(x.shape[0], weight.shape[0]), order="C")
    step = max(1, _BLOCK // max(1, weight.shape[1]))
    for start in range(0, len(weight), step):
        rows = slice(start, start + step)
        out[:, rows] = product(x, _widened(weight[rows]).T)
    if scale is not None:
        out *= scale
    if bias is not None:
        out += bias
    return out


def quantized_linear(x: Array, weight: Array, scale: Array | None, bias: Array | None) -> Array:
    """Return `(x weight.T) * scale + bias` for `x` of two or more dimensions, or raise PyTorch's error.

    Args:
        x: (..., in_features), float32.
        weight: (out_features, in_features): int8, float16, uint16 that holds the bits of bfloat16, or float32.
        scale, bias: (out_features,), floating-point, or None.
    """
    if x.ndim < 2:
        raise RuntimeError("The dimension of input tensor should be larger than or equal to 2")
    if x.dtype != np.float32:
        raise RuntimeError(f"expected scalar type Float but found {_name(x)}")
    features, depth = weight.shape
    if x.shape[-1] != depth:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({math.prod(x.shape[:-1])}x{x.shape[-1]} and "
            f"{depth}x{features}): the number of rows in the packed weight should be equal to K: {x.shape[-1]}"
        )
    shape = (*x.shape[:-1], features)
    if is_meta(x):
        return np.empty_like(x, shape=shape, order="C")
    scale, bias = (None if each is None else each.astype(np.float32, copy=False) for each in (scale, bias))
    flat = x.reshape(math.prod(x.shape[:-1]), depth)
    if not flat.flags.c_contiguous:
        flat = flat.copy()
    return widening_linear(flat, weight, scale, bias).reshape(shape)


def quantized_rows(weight: Array) -> tuple[Array, Array]:
    """Return the rows of a weight as int8, and the scale of each row: `weight` is nearly `int8 * scale`.

    Each row is scaled so that its largest magnitude becomes 127, and rounded to the nearest integers. The scale of a
    row with infinities or NaN is NaN.

    Args:
        weight: (n, k), floating-point.
    """
    wide = weight.astype(np.float32)
    largest = np.max(np.abs(wide), axis=1, initial=0)
    # A row whose scale would not be a normal number is rounded to fewer levels; a row of zeros needs no scale at all.
    scale = np.maximum(largest / np.float32(_LARGEST), np.finfo(np.float32).tiny)
    scale[~np.isfinite(largest)] = np.nan
    return np.nan_to_num(np.rint(wide / scale[:, None])).astype(np.int8), scale


def saturated(weight: Array) -> Array:
    """Return a weight as float16; what is beyond its range becomes the largest number, as in PyTorch."""
    largest = np.finfo(np.float16).max
    return np.clip(weight.astype(np.float32), -largest, largest).astype(np.float16)


def bfloat16_bits(weight: Array) -> Array:
    """Return the bits of a weight rounded to bfloat16, as uint16: to the nearest number, and half to even."""
    wide = weight.astype(np.float32)
    bits = wide.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    kept = np.where(np.isnan(wide), bits | np.uint32(0x400000), nearest)  # (rounded up, NaN could become a number)
    return (kept >> np.uint32(16)).astype(np.uint16)


def dequantized_rows(weight: Array, scale: Array | None) -> Array:
    """Return the weight of a quantized layer as float32: `weight * scale`, with a scale per row, or None."""
    wide = _widened(weight)
    return wide if scale is None else wide * scale.astype(np.float32, copy=False)[:, None]


# Products of bytes --------------------------------------------------------------------------------


@twin
def byte_product(a: Array, b: Array) -> Array:
    """Return the product, as int32, of matrices (m, k) of int8 or uint8 and (k, n) of int8."""
    out = np.zeros_like(a, shape=(a.shape[0], b.shape[1]), dtype=np.int32, order="C")
    for start in range(0, a.shape[1], _EXACT_TERMS):
        terms = slice(start, start + _EXACT_TERMS)
        out += product(a[:, terms].astype(np.float32), b[terms].astype(np.float32)).astype(np.int32)
    return out


def _c_name(x: Array) -> str:
    return dtypes.C_NAMES[dtypes.from_numpy_dtype(x.dtype).name]


def int_mm(a: Array, b: Array) -> Array:
    """Return the product of two matrices of bytes, as int32, or raise PyTorch's error."""
    start = "int_mm_out_cpu:"
    if a.ndim != 2:
        raise RuntimeError(f"{start} Expected self to be of dimension 2 but got {a.ndim}")
    if b.ndim != 2:
        raise RuntimeError(f"{start} Expected mat2 to be of dimension 2 but got {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"{start} self.size(1) needs to match mat2.size(0) but got {a.shape[1]} and {b.shape[0]}")
    if a.dtype not in (np.int8, np.uint8):
        raise RuntimeError(f"{start} Expected self dtype to be int8 or uint8 but got {_c_name(a)}")
    if b.dtype != np.int8:
        raise RuntimeError(f"{start} Expected mat2 dtype to be of type int8 but got {_c_name(b)}")
    if is_meta(a):
        return np.empty_like(a, shape=(a.shape[0], b.shape[1]), dtype=np.int32, order="C")
    return byte_product(a, b)
