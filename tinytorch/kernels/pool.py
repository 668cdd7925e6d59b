"""Maxima and averages of windows, on arrays.

The kernels of ops get arrays (*, *spatial); those with a twin in C get planes, arrays (planes, *spatial). Maxima and
sums are separable: the maximum of a window is the maximum along one axis of the maxima along the next one. Axis by
axis, a window of k x k elements takes 2 k passes over whole arrays instead of k * k.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from .activation import widened
from .dtypes import FLOATS
from .indexing import check_bounds
from .intp import as_intp
from .native import twin
from .parallel import blocks
from .shape import formatted

Array = Any


class Windows(NamedTuple):
    """The windows along one axis.

    Attributes:
        start: where each window begins, or (planes, windows); negative in the padding.
        parts: per k the windows (begin, end) that have an element k inside the array, and where those elements are.
        dilation: the distance of two elements of a window; 0 if windows differ in length, or between planes.
        distinct: whether no element is in two windows.
    """

    start: Array
    parts: tuple[tuple[int, int, Any], ...]
    dilation: int
    distinct: bool

    @property
    def many(self) -> int:
        """How many windows there are."""
        return int(self.start.shape[-1])


def output_length(length: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return how many windows there are; with `ceil_mode`, counting one that extends beyond the array.

    Such a window must begin inside the array or the padding before it.
    """
    room = length + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= length + padding else count


def sliding(length: int, kernel: int, stride: int, padding: int, dilation: int, count: int) -> Windows:
    """Return `count` windows of `kernel` elements, `stride` apart."""
    start = np.arange(count) * stride - padding
    parts = []
    for k in range(kernel):
        offset = k * dilation - padding
        begin = max(0, -(offset // stride))
        end = min(count, (length - 1 - offset) // stride + 1)
        if begin < end:
            at = begin * stride + offset
            parts.append((begin, end, slice(at, (end - 1) * stride + offset + 1, stride)))
        else:
            parts.append((0, 0, slice(0, 0)))
    overlap = stride < dilation * (kernel - 1) + 1 and kernel > 1
    return Windows(start, tuple(parts), dilation, not overlap)


def adaptive(length: int, count: int) -> Windows:
    """Return `count` windows, whose lengths differ by 1 at most, that cover the axis."""
    if count and length % count == 0:
        kernel = length // count
        return sliding(length, kernel, kernel, 0, 1, count)
    start = np.arange(count) * length // max(count, 1)
    last = -(-(np.arange(1, count + 1) * length) // max(count, 1)) - 1
    longest = int((last - start).max()) + 1 if count else 1
    parts = tuple([(0, count, np.minimum(start + k, last)) for k in range(longest)])
    return Windows(start, parts, 0, False)


def fractional_pool(x: Array, samples: Array, kernel: Any, sizes: Any) -> tuple[Array, Array]:
    """Return the maxima of windows at pseudo-random places, and their indices, as `max_pool`.

    Args:
        x: (..., *spatial).
        samples: (..., n), random numbers in [0, 1).
        kernel, sizes: the size of the windows and their number, of each spatial dimension.
    """
    n = len(kernel)
    drawn = samples.reshape(-1, n)
    if drawn.dtype.itemsize == 2:
        drawn = drawn.astype(np.float32)
    # The last column belongs to the first dimension of two, the first one of three.
    columns = range(n) if n == 3 else (1, 0)
    facts = zip(columns, x.shape[x.ndim - n :], kernel, sizes, strict=True)
    windows = tuple([_fractional(drawn[:, column], length, k, count) for column, length, k, count in facts])
    return max_pool(x, windows, False)


def _fractional(samples: Array, length: int, kernel: int, count: int) -> Windows:
    """Return windows that begin at pseudo-random places, which differ between planes.

    Graham, "Fractional Max-Pooling", 2014: u is a random number in [0, 1), and window i begins at
    floor((i + u) a) - floor(u a), the last one at the end.
    """
    start = np.empty_like(samples, dtype=np.int64, shape=(len(samples), count), order="C")
    if count > 1:
        alpha = samples.dtype.type((length - kernel) / (count - 1))
        places = np.arange(count - 1).astype(samples.dtype)
        u = samples[:, None]
        start[:, :-1] = ((places + u) * alpha).astype(np.int64) - (u * alpha).astype(np.int64)
    start[:, -1:] = length - kernel
    parts = tuple([(0, count, start + k) for k in range(kernel)])
    return Windows(start, parts, 0, False)


def _planes(x: Array, n: int) -> Array:
    return x.reshape(math.prod(x.shape[: x.ndim - n]), *x.shape[x.ndim - n :])


def _moving(windows: tuple[Windows, ...], x: Array) -> tuple[Windows, ...]:
    """Return the windows without the row dimension of planes with one row, by which lines are pooled."""
    rows = windows[0]
    alone = len(windows) == 2 and x.shape[-2] == rows.many == len(rows.parts) == 1
    return windows[1:] if alone and not rows.start.any() else windows


# Maxima -------------------------------------------------------------------------------------------


@twin
def max_pool(x: Array, windows: tuple[Windows, ...], keeps_format: bool = True) -> tuple[Array, Array]:
    """Return the maximum of each window and its index in the plane, with `keeps_format` in the memory format of `x`."""
    windows = _moving(windows, x)
    n = len(windows)
    out, index = maxima(_planes(x, n), windows, True)
    shape = (*x.shape[: x.ndim - n], *out.shape[1:])
    out, index = out.reshape(shape), index.reshape(shape)
    return (formatted(out, x), formatted(index, x)) if keeps_format else (out, index)


@twin
def max_values(x: Array, windows: tuple[Windows, ...]) -> Array:
    """Return the maximum of each window."""
    n, counts = len(windows), tuple([axis.many for axis in windows])
    planes = _planes(x, n)
    out = np.empty_like(x, shape=(len(planes), *counts), order="C")

    def work(begin: int, end: int) -> None:
        out[begin:end] = maxima(planes[begin:end], windows, False)[0]

    if out.size:
        blocks(work, len(planes), math.prod(planes.shape[1:]))
    return formatted(out.reshape(*x.shape[: x.ndim - n], *counts), x)


def max_unpool(x: Array, index: Array, spatial: tuple[int, ...]) -> Array:
    """Return planes of zeros with the elements of `x` at indices; of several elements at one index the last."""
    n = len(spatial)
    lead = x.shape[:-n]
    out = np.zeros_like(x, shape=(math.prod(lead), math.prod(spatial)), order="C")
    given = out.shape[0], math.prod(x.shape[-n:])
    np.put_along_axis(out, index.reshape(given), x.reshape(given), 1)
    out = out.reshape(*lead, *spatial)
    return formatted(out, x) if n == 2 else out


def _part(v: Array, axis: int, where: Any) -> Array:
    if isinstance(where, slice):
        return v[(slice(None),) * axis + (where,)]
    if where.ndim == 1:
        return v.take(as_intp(where), axis)
    return np.take_along_axis(v, _along_axis(where, v.ndim, axis), axis)


def _along_axis(numbers: Array, ndim: int, axis: int) -> Array:
    """Return a number per window, or per plane and window, as an array that broadcasts with those of all planes."""
    planes = numbers.shape[0] if numbers.ndim == 2 else 1
    return numbers.reshape([planes, *[1] * (axis - 1), numbers.shape[-1], *[1] * (ndim - axis - 1)])


@twin
def maxima(x: Array, windows: tuple[Windows, ...], indexed: bool) -> tuple[Array, Any]:
    """Return the maximum of each window, and with `indexed` its index in the plane (int64), of equal ones the first."""
    counts = tuple([axis.many for axis in windows])
    if not len(x) or 0 in counts:
        shape = (len(x), *counts)
        return np.zeros_like(x, shape=shape), np.zeros_like(x, dtype=np.int64, shape=shape) if indexed else None
    return maxima_at(x, windows, indexed)


@twin
def maxima_at(x: Array, windows: tuple[Windows, ...], indexed: bool) -> tuple[Array, Any]:
    """Return `maxima` of any windows, of at least one element each."""
    best = widened(x)
    index = np.arange(math.prod(x.shape[1:]), like=x).reshape(1, *x.shape[1:]) if indexed else None
    for axis in range(len(windows), 0, -1):  # the last axis first: of equal maxima the first one in memory is taken
        best, index = _along(best, index, axis, windows[axis - 1], math.prod(x.shape[axis + 1 :]))
    return best.astype(x.dtype, copy=False), index


def _along(x: Array, places: Array | None, axis: int, windows: Windows, step: int) -> tuple[Array, Any]:
    """Return the maxima of windows along one axis, and their places; NaN is the largest, and the last one counts.

    Args:
        x, places: the maxima along the axes after this one, and their indices in the plane, or None.
        axis, windows: the axis, and the windows along it.
        step: the difference of the indices of neighbours along the axis.
    """
    length, cut = x.shape[axis], (slice(None),) * axis
    if places is None and len(windows.parts) > 1 and all(part[:2] == (0, windows.many) for part in windows.parts):
        return functools.reduce(np.maximum, [_part(x, axis, where) for _, _, where in windows.parts]), None
    lowest = -np.inf if x.dtype.kind in FLOATS else np.iinfo(x.dtype).min
    best = np.full_like(x, lowest, shape=(*x.shape[:axis], windows.many, *x.shape[axis + 1 :]), order="C")
    index: Any = None
    if places is not None:  # at first those of the first elements outside of the padding
        first = np.where(windows.start < 0, windows.start % (windows.dilation or 1), windows.start)
        inside = np.minimum(first, length - 1)
        beyond = (first - inside) * step  # (of windows that have no element)
        index = np.empty_like(best, dtype=np.int64)
        index[...] = _part(places, axis, inside) + _along_axis(beyond, x.ndim, axis)
    for begin, end, where in windows.parts:
        part = (*cut, slice(begin, end))
        new, old = _part(x, axis, where), best[part]
        if places is not None:
            np.copyto(index[part], _part(places, axis, where), where=(new > old) | (new != new))
        np.maximum(old, new, out=old)
    return best, index


# Elements at indices ------------------------------------------------------------------------------


def picked(x: Array, index: Array, n: int, distinct: bool) -> Array:
    """Return the elements of planes of n dimensions at indices (`distinct` is for the gradient)."""
    planes = math.prod(x.shape[: x.ndim - n])
    flat = x.reshape(planes, math.prod(x.shape[x.ndim - n :]))
    at = index.reshape(planes, math.prod(index.shape[index.ndim - n :]))
    check_bounds(at, flat.shape[1], x.ndim - n)
    return np.take_along_axis(flat, at, 1).reshape(index.shape)


def placed(g: Array, index: Array, spatial: tuple[int, ...], n: int, distinct: bool) -> Array:
    """Return planes of zeros with the elements of `g` added at indices."""
    out = place(_planes(g, n), _planes(index, n), spatial, distinct)
    return out.reshape(g.shape[: g.ndim - n] + spatial)


@twin
def place(g: Array, index: Array, spatial: tuple[int, ...], distinct: bool) -> Array:
    """Return planes of zeros with the elements of `g` added at indices; `distinct` promises that no two are equal."""
    planes, size = len(g), math.prod(spatial)
    out = np.zeros_like(g, shape=(planes, *spatial), order="C")
    at, flat = index.reshape(planes, math.prod(index.shape[1:])), out.reshape(-1)
    check_bounds(at, size, 1)
    places = (at + (np.arange(planes) * size)[:, None]).reshape(-1)
    if distinct or not g.size:
        flat[places] = g.reshape(-1)
    else:
        flat[...] = np.bincount(as_intp(places), widened(g).reshape(-1), flat.size)
    return out


# Averages -----------------------------------------------------------------------------------------


def box_sums(x: Array, windows: tuple[Windows, ...]) -> Array:
    """Return the sum of each window."""
    for axis in range(1, len(windows) + 1):  # the first axis first: its rows are contiguous
        along = windows[axis - 1]
        cut = (slice(None),) * axis
        count = along.many
        whole = [part for part in along.parts if part[:2] == (0, count)]
        rest = [part for part in along.parts if part[:2] != (0, count) and part[0] < part[1]]
        if len(whole) > 1:
            out = np.add(_part(x, axis, whole[0][2]), _part(x, axis, whole[1][2]))
        elif whole:
            out = _part(x, axis, whole[0][2])
            out = out if len(along.parts) == 1 else out.copy()
        else:
            out = np.zeros_like(x, shape=(*x.shape[:axis], count, *x.shape[axis + 1 :]), order="C")
        for begin, end, where in whole[2:] + rest:
            old = out[(*cut, slice(begin, end))]
            old += _part(x, axis, where)
        x = out
    return x


@twin
def avg_pool(x: Array, windows: tuple[Windows, ...], divisor: Any, keeps_format: bool = True) -> Array:
    """Return the sum of each window over `divisor`: a number, or an array of one number per window."""
    windows = _moving(windows, x)
    planes = _planes(x, len(windows))
    counts = tuple([axis.many for axis in windows])
    out = np.empty_like(x, shape=(len(planes), *counts), order="C")

    def work(begin: int, end: int) -> None:
        sums = box_sums(widened(planes[begin:end]), windows)
        if x.dtype.kind in "iu":  # division as in C, towards 0
            out[begin:end] = np.sign(sums) * np.sign(divisor) * (np.abs(sums) // np.abs(divisor))
        elif out.dtype == sums.dtype:
            np.divide(sums, divisor, out=out[begin:end])
        else:
            out[begin:end] = sums / divisor

    if out.size:
        blocks(work, len(planes), math.prod(planes.shape[1:]))
    out = out.reshape(*x.shape[: x.ndim - len(windows)], *counts)
    return formatted(out, x) if keeps_format else out


@twin
def spread_averages(g: Array, windows: tuple[Windows, ...], spatial: tuple[int, ...], divisor: Any) -> Array:
    """Return planes whose elements are the sums of `g / divisor` over their windows: the transpose of `avg_pool`."""
    planes = _planes(g, len(windows))
    out = np.empty_like(g, shape=(len(planes), *spatial), order="C")

    def work(begin: int, end: int) -> None:
        block = widened(planes[begin:end]) / divisor
        for axis in range(len(windows), 0, -1):
            last = axis == 1 and out.dtype == block.dtype
            block = _spread(block, axis, windows[axis - 1], spatial[axis - 1], out[begin:end] if last else None)
        if not last:
            out[begin:end] = block

    if out.size:
        blocks(work, len(planes), math.prod(spatial))
    return out.reshape(*g.shape[: g.ndim - len(windows)], *spatial)


def _spread(g: Array, axis: int, windows: Windows, length: int, out: Array | None) -> Array:
    shape = (*g.shape[:axis], length, *g.shape[axis + 1 :])
    if out is None:
        out = np.empty_like(g, shape=shape, order="C")
    cut = (slice(None),) * axis
    parts = [part for part in windows.parts if part[0] < part[1]]
    covered = sum(end - begin for begin, end, _ in parts)
    if not (windows.distinct and covered == length):
        out[...] = 0
    for begin, end, where in parts:
        target = out[(*cut, where)]
        if windows.distinct:
            target[...] = g[(*cut, slice(begin, end))]
        else:
            target += g[(*cut, slice(begin, end))]
    return out
