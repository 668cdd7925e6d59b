"""Discrete Fourier transforms, by NumPy's pocketfft: results have the precision of their input.

A transform is linear, and its transpose is a transform again, of a kind that is here. The results lie in memory as
PyTorch's do: first the dimensions that are not transformed, in the order of the input's memory, then the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.kernels import dtypes, meta, parallel

Array = Any

# How a result is scaled: not at all, by the square root of the number of points, or by their number.
UNSCALED, BY_ROOT, BY_COUNT = range(3)
_FORWARD = ("backward", "ortho", "forward")  # NumPy's names, for transforms in either direction
_BACKWARD = ("forward", "ortho", "backward")


def complex_to_complex(x: Array, dims: tuple[int, ...], scale: int, forward: bool) -> Array:
    """Return the transform of complex numbers along some dimensions."""
    _check(x)
    out = _laid_out(x, x.dtype, x.shape, _by_stride(x, dims))
    if meta.is_meta(x):
        return out
    if not dims or not x.size:
        out[...] = x
        return out
    function, norm = (np.fft.fft, _FORWARD[scale]) if forward else (np.fft.ifft, _BACKWARD[scale])
    for dim in dims[::-1]:
        _transform(function, x, dim, None, norm, out)
        x = out
    return out


def real_to_complex(x: Array, dims: tuple[int, ...], scale: int, onesided: bool) -> Array:
    """Return the transform of real numbers; if `onesided`, only the first half along the last dimension."""
    _check(x)
    last = dims[-1]
    kind = dtypes.from_numpy_dtype(x.dtype).to_complex().numpy
    shape = list(x.shape)
    if onesided:
        shape[last] = shape[last] // 2 + 1
    out = _laid_out(x, kind, tuple(shape), (*_by_stride(x, dims[:-1]), last))
    if meta.is_meta(x) or not out.size:
        return out
    norm = _FORWARD[scale]
    _transform(np.fft.rfft if onesided else np.fft.fft, x, last, None, norm, out)
    for dim in dims[-2::-1]:
        _transform(np.fft.fft, out, dim, None, norm, out)
    return out


def complex_to_real(x: Array, dims: tuple[int, ...], scale: int, length: int) -> Array:
    """Return the inverse transform of the half of a spectrum: `length` real numbers along the last dimension."""
    if len(dims) > 1:
        x = complex_to_complex(x, dims[:-1], scale, False)
    _check(x)
    last = dims[-1]
    shape = (*x.shape[:last], length, *x.shape[last + 1 :])
    out = _laid_out(x, dtypes.from_numpy_dtype(x.dtype).to_real().numpy, shape, (last,))
    if not meta.is_meta(x) and out.size:
        _transform(np.fft.irfft, x, last, length, _BACKWARD[scale], out)
    return out


def scaled_interior(x: Array, dim: int, length: int, factor: float) -> Array:
    """Return a half of a spectrum of `length` points, with the frequencies multiplied that the other half has too."""
    out = x.copy("K")
    out[(slice(None),) * dim + (slice(1, length - length // 2),)] *= factor
    return out


def _transform(function: Any, x: Array, dim: int, length: int | None, norm: str, out: Array) -> None:
    """Write the transform along one dimension into `out`, which may be `x`, by several threads if it is large."""
    pieces = [axis for axis in range(x.ndim) if axis != dim and x.shape[axis] > 1]
    if x.size < parallel.LARGE // 8 or not pieces or type(x) is not np.ndarray:
        function(x, length, dim, norm, out)
        return
    axis = max(pieces, key=lambda each: abs(x.strides[each]))
    before = (slice(None),) * axis

    def work(begin: int, end: int) -> None:
        part = (*before, slice(begin, end))
        function(x[part], length, dim, norm, out[part])

    parallel.parallel_for(work, x.shape[axis])


def _check(x: Array) -> None:
    if x.dtype.char not in "fdFD":
        kind = dtypes.from_numpy_dtype(x.dtype).tensor_name
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {kind}")


def _by_stride(x: Array, dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(dims, key=lambda dim: -abs(x.strides[dim])))


def _laid_out(x: Array, dtype: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """Return a new array whose dimensions `dims` are the innermost in memory, in their order."""
    batch = _by_stride(x, [dim for dim in range(x.ndim) if dim not in dims])
    order = (*batch, *dims)
    made = np.empty_like(x, dtype, "C", shape=tuple([shape[dim] for dim in order]))
    return made.transpose(np.argsort(order)) if order else made
