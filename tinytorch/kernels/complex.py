"""Functions of complex arrays: their parts, absolute values and angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes
from .places import storage_offset

Array = Any


def view_as_real(x: Array) -> Array:
    """Return the real and imaginary parts as a view with one more dimension, of length 2."""
    if x.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return x[..., None].view(x.real.dtype)


def reals(x: Array) -> Array:
    """Return an array of real numbers itself, of complex ones the pairs of their parts: a view."""
    return view_as_real(x) if x.dtype.kind == "c" else x


def view_as_complex(x: Array) -> Array:
    """Return pairs of real numbers, in the last dimension, as a view of complex numbers."""
    kind = dtypes.from_numpy_dtype(x.dtype)
    if kind not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{kind.tensor_name}"
        )
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if not x.size:
        return np.empty_like(x, kind.to_complex().numpy, shape=x.shape[:-1])
    if x.strides[-1] != x.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step // x.itemsize % 2 for step in x.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if storage_offset(x) % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return x.view(kind.to_complex().numpy)[..., 0]


def _of_parts(like: Array, real: Array, imag: Array) -> Array:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    out = np.empty_like(like, dtypes.from_numpy_dtype(like.dtype).to_complex().numpy, order="C", shape=shape)
    out.real[...], out.imag[...] = real, imag
    return out


def _checked_parts(x: Array, y: Array) -> None:
    first, second = (dtypes.from_numpy_dtype(part.dtype) for part in (x, y))
    if not {first, second} <= {dtypes.float32, dtypes.float64}:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{first.tensor_name} and {second.tensor_name}"
        )
    if first is not second:
        raise RuntimeError(
            f"Expected object of scalar type {first.tensor_name} but got scalar type {second.tensor_name} for second "
            "argument"
        )


def of_parts(x: Array, y: Array) -> Array:
    """Return `x + 1j * y` of two real arrays."""
    _checked_parts(x, y)
    return _of_parts(x, x, y)


def polar(x: Array, y: Array) -> Array:
    """Return the numbers with absolute values `x` and angles `y`."""
    _checked_parts(x, y)
    return _of_parts(x, x * np.cos(y), x * np.sin(y))


def sgn(x: Array) -> Array:
    """Return `x / abs(x)` of complex numbers, 0 for 0."""
    size = np.abs(x)
    zero = size == 0
    return np.where(zero, 0, x / np.where(zero, 1, size)).astype(x.dtype, copy=False)


def isreal(x: Array) -> Array:
    """Return where the imaginary part is 0."""
    return x.imag == 0 if x.dtype.kind == "c" else np.ones_like(x, dtype=np.bool_)


# Logarithms of sums -------------------------------------------------------------------------------


def logaddexp(x: Array, y: Array) -> Array:
    """Return `log(exp(x) + exp(y))`: the number with the larger real part is a factor outside of the logarithm."""
    less: Array = x.real < y.real
    least: Array = np.where(less, x, y)
    most: Array = np.where(less, y, x)
    out = most + np.log1p(np.exp(least - most))
    equal = np.isinf(least.real) & (least.real == most.real)
    out = np.where(equal, np.where(least.real < 0, least, np.log(np.exp(least) + np.exp(most))), out)
    return np.where(np.isnan(x) | np.isnan(y), complex(np.nan, np.nan), out).astype(out.dtype, copy=False)


def log_sums(x: Array, dim: int) -> Array:
    """Return the logarithms of the cumulative sums of exp(x) along `dim`."""
    out = np.empty_like(x)
    if not x.size:
        return out
    rows, sums = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    sums[0] = rows[0]
    for k in range(1, len(rows)):
        sums[k] = logaddexp(rows[k], sums[k - 1])  # (of equal real parts the order decides the branch)
    return out


def signed_sums(weights: Array, a: Array, b: Array, dim: int, reverse: bool) -> Array:
    """Return exp(b) * cumsum(weights * exp(a)) along `dim`, from the end if `reverse`, computed with logarithms."""
    logs = np.log(weights) + a
    return np.exp(b + (np.flip(log_sums(np.flip(logs, dim), dim), dim) if reverse else log_sums(logs, dim)))
