"""Discrete Fourier transforms, by NumPy's pocketfft: results have the precision of their input.

In single precision, rows whose length is a power of two have native twins.

A transform is linear, and its transpose is a transform again, of a kind that is here. The results lie in memory as
PyTorch's do: first the dimensions that are not transformed, in the order of the input's memory, then the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from . import dtypes, meta
from .checks import tensor_name
from .native import twin

Array = Any
_Norm = Literal["backward", "ortho", "forward"]

# How a result is scaled: not at all, by the square root of the number of points, or by their number.
UNSCALED, BY_ROOT, BY_COUNT = range(3)
# NumPy's names of them, for transforms in either direction.
_FORWARD: tuple[_Norm, ...] = ("backward", "ortho", "forward")
_BACKWARD: tuple[_Norm, ...] = ("forward", "ortho", "backward")
#: Rows up to this length are not worth the steps before and after their twin's.
_SHORT = 64


def complex_to_complex(x: Array, dims: tuple[int, ...], scale: int, forward: bool) -> Array:
    """Return the transform of complex numbers along some dimensions."""
    _check(x)
    dims = _by_stride(x, dims)
    order = _order(x, dims)
    if meta.is_meta(x):
        return _allocated(x, x.dtype, x.shape, order)
    made = x
    for dim in dims[::-1] if x.size else ():
        made = _along(made, dim, scale, forward, made is x)
    return _laid_out(made.copy() if made is x else made, order)


def real_to_complex(x: Array, dims: tuple[int, ...], scale: int, onesided: bool) -> Array:
    """Return the transform of real numbers; if `onesided`, only the first half along the last dimension."""
    _check(x)
    last = dims[-1]
    order = _order(x, (*_by_stride(x, dims[:-1]), last))
    length = x.shape[last]
    shape = (*x.shape[:last], length // 2 + 1 if onesided else length, *x.shape[last + 1 :])
    kind = dtypes.from_numpy_dtype(x.dtype).to_complex().numpy
    if meta.is_meta(x) or not x.size:
        return _allocated(x, kind, shape, order)
    if _suits(x, length):
        rows, complete = _as_rows(x, last)
        made = complete(rows_of_reals(rows, onesided, _factor(scale, length)).view(kind))
    else:
        made = (np.fft.rfft if onesided else np.fft.fft)(x, None, last, _FORWARD[scale])
    for dim in dims[-2::-1]:
        made = _along(made, dim, scale, True, False)
    return _laid_out(made, order)


def complex_to_real(x: Array, dims: tuple[int, ...], scale: int, length: int) -> Array:
    """Return the inverse transform of the half of a spectrum: `length` real numbers along the last dimension."""
    if len(dims) > 1:
        x = complex_to_complex(x, dims[:-1], scale, False)
    _check(x)
    last = dims[-1]
    order = _order(x, (last,))
    shape = (*x.shape[:last], length, *x.shape[last + 1 :])
    if meta.is_meta(x) or not x.size:
        return _allocated(x, dtypes.from_numpy_dtype(x.dtype).to_real().numpy, shape, order)
    if _suits(x, length) and x.shape[last] == length // 2 + 1:
        rows, complete = _as_rows(x, last)
        return _laid_out(complete(rows_to_reals(rows.view(np.float32), _factor(scale, length))), order)
    return _laid_out(np.fft.irfft(x, length, last, _BACKWARD[scale]), order)


def complex_to_real_part(x: Array, dim: int, scale: int) -> Array:
    """Return the real part of the inverse transform along one dimension."""
    _check(x)
    order, length = _order(x, (dim,)), x.shape[dim]
    if meta.is_meta(x) or not x.size:
        return _allocated(x, dtypes.from_numpy_dtype(x.dtype).to_real().numpy, x.shape, order)
    if _suits(x, length):
        rows, complete = _as_rows(x, dim)
        return _laid_out(complete(rows_to_real_part(rows.view(np.float32), _factor(scale, length))), order)
    return _laid_out(np.fft.ifft(x, None, dim, _BACKWARD[scale]).real.copy(), order)


def _along(x: Array, dim: int, scale: int, forward: bool, keep: bool) -> Array:
    """Return the transform of complex numbers along one dimension; unless `keep`, it may be written into `x`."""
    if _suits(x, x.shape[dim]):
        rows, complete = _as_rows(x, dim)
        return complete(complex_rows(rows.view(np.float32), not forward, _factor(scale, x.shape[dim])).view(x.dtype))
    out = None if keep else x
    if forward:
        return np.fft.fft(x, None, dim, _FORWARD[scale], out)
    return np.fft.ifft(x, None, dim, _BACKWARD[scale], out)


def _suits(x: Array, length: int) -> bool:
    """Return whether the transform along a dimension of this length has a twin: a power of two, in single precision."""
    return type(x) is np.ndarray and x.dtype.char in "fF" and length & (length - 1) == 0 and length > _SHORT


def _as_rows(x: Array, dim: int) -> tuple[Array, Callable[[Array], Array]]:
    """Return a dimension as rows of contiguous memory, and a function that puts transformed rows into its place."""
    moved = x.swapaxes(dim, -1)
    shape = moved.shape[:-1]
    rows = np.ascontiguousarray(moved).reshape(-1, moved.shape[-1])
    return rows, lambda made: made.reshape(*shape, made.shape[-1]).swapaxes(dim, -1)


def _factor(scale: int, length: int) -> float:
    return (1.0, 1 / math.sqrt(length), 1 / length)[scale]


def scaled_interior(x: Array, dim: int, length: int, factor: float) -> Array:
    """Return a half of a spectrum of `length` points, with the frequencies multiplied that the other half has too."""
    out = x.copy("K")
    out[(slice(None),) * dim + (slice(1, length - length // 2),)] *= factor
    return out


# Rows ---------------------------------------------------------------------------------------------
# Complex numbers are pairs of real ones here, since their twins take arrays of float32.


@twin
def complex_rows(x: Array, inverse: bool, factor: float) -> Array:
    """Return the transforms of rows of complex numbers (rows, 2 n), multiplied by a factor."""
    z = x.view(_COMPLEX[x.dtype.char])
    made = np.fft.ifft(z, norm="forward") if inverse else np.fft.fft(z)
    made *= factor
    return made.view(x.dtype)


@twin
def rows_of_reals(x: Array, onesided: bool, factor: float) -> Array:
    """Return the transforms of rows of real numbers (rows, n): n // 2 + 1 complex numbers if `onesided`, else n."""
    made = np.fft.rfft(x) if onesided else np.fft.fft(x)
    made *= factor
    return made.view(x.dtype)


@twin
def rows_to_reals(x: Array, factor: float) -> Array:
    """Return the rows of n real numbers whose transforms begin with rows (rows, n + 2), with n even, times a factor."""
    made = np.fft.irfft(x.view(_COMPLEX[x.dtype.char]), norm="forward")
    made *= factor
    return made


@twin
def rows_to_real_part(x: Array, factor: float) -> Array:
    """Return the real parts of the inverse transforms of rows of complex numbers (rows, 2 n), times a factor."""
    made = np.fft.ifft(x.view(_COMPLEX[x.dtype.char]), norm="forward").real * factor
    return made.astype(x.dtype, copy=False)


_COMPLEX = {"f": np.complex64, "d": np.complex128}


def _check(x: Array) -> None:
    if x.dtype.char not in "fdFD":
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {tensor_name(x)}")


def _by_stride(x: Array, dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(dims, key=lambda dim: -abs(x.strides[dim])))


def _order(x: Array, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of the dimensions in the memory of a result, of which `dims` are the innermost."""
    return (*_by_stride(x, [dim for dim in range(x.ndim) if dim not in dims]), *dims)


def _allocated(x: Array, dtype: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Array:
    made = np.empty_like(x, dtype, "C", shape=tuple([shape[dim] for dim in order]))
    return made.transpose(np.argsort(order)) if order else made


def _laid_out(x: Array, order: tuple[int, ...]) -> Array:
    """Return `x`, or a copy, with its dimensions in this order in memory."""
    if not order or (turned := x.transpose(order)).flags.c_contiguous:
        return x
    return turned.copy().transpose(np.argsort(order))
