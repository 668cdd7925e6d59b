"""Maxima and averages of windows, on arrays.

The kernels of ops get arrays (*, *spatial); those with a twin in C get planes, arrays (planes, *spatial). Maxima and
sums are separable: the maximum of a window is the maximum along one axis of the maxima along the next one. Axis by
axis, a window of k x k elements takes 2 k passes over whole arrays instead of k * k.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .activation import choose, keep, widened
from .dtypes import FLOATS
from .indexing import check_bounds
from .intp import as_intp
from .native import twin
from .parallel import blocks
from .shape import formatted

Array = Any


class Windows(NamedTuple):
    """The windows along one axis.

    Element k of window o lies at `min(start[o] + k * dilation, last[o])`.

    Attributes:
        start: per window, or per plane and window; negative in the padding.
        last: the last place of each window if windows differ in length, else None.
        first: per window the first k that is not in the padding; None if that is 0 for all windows.
        parts: per k the windows (begin, end) that have an element k inside the array, and where those elements are.
        dilation: the distance of two elements of a window.
        distinct: whether no element is in two windows.
    """

    start: Array
    last: Array | None
    first: Array | None
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
    first = np.maximum(-(start // dilation), 0) if padding else None
    overlap = stride < dilation * (kernel - 1) + 1 and kernel > 1
    return Windows(start, None, first, tuple(parts), dilation, not overlap)


def adaptive(length: int, count: int) -> Windows:
    """Return `count` windows, whose lengths differ by 1 at most, that cover the axis."""
    if count and length % count == 0:
        kernel = length // count
        return sliding(length, kernel, kernel, 0, 1, count)
    start = np.arange(count) * length // max(count, 1)
    last = -(-(np.arange(1, count + 1) * length) // max(count, 1)) - 1
    longest = int((last - start).max()) + 1 if count else 1
    parts = tuple([(0, count, np.minimum(start + k, last)) for k in range(longest)])
    return Windows(start, last, None, parts, 1, False)


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
    return Windows(start, None, None, parts, 1, False)


def _planes(x: Array, n: int) -> Array:
    return x.reshape(math.prod(x.shape[: x.ndim - n]), *x.shape[x.ndim - n :])


def _moving(windows: tuple[Windows, ...], x: Array) -> tuple[Windows, ...]:
    """Return the windows without the row dimension of planes with one row, by which lines are pooled."""
    rows = windows[0]
    alone = len(windows) == 2 and x.shape[-2] == rows.many == len(rows.parts) == 1
    return windows[1:] if alone and rows.first is None else windows


# Maxima -------------------------------------------------------------------------------------------


def max_pool(x: Array, windows: tuple[Windows, ...], keeps_format: bool = True) -> tuple[Array, Array]:
    """Return the maximum of each window and its index in the plane, with `keeps_format` in the memory format of `x`."""
    windows = _moving(windows, x)
    n = len(windows)
    out, index = maxima(_planes(x, n), windows, True)
    shape = (*x.shape[: x.ndim - n], *out.shape[1:])
    out, index = out.reshape(shape), index.reshape(shape)
    return (formatted(out, x), formatted(index, x)) if keeps_format else (out, index)


def max_values(x: Array, windows: tuple[Windows, ...]) -> Array:
    """Return the maximum of each window."""
    n = len(windows)
    out, _ = maxima(_planes(x, n), windows, False)
    return formatted(out.reshape(*x.shape[: x.ndim - n], *out.shape[1:]), x)


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
    shape = [1] * v.ndim
    shape[0], shape[axis] = where.shape
    return np.take_along_axis(v, where.reshape(shape), axis)


def _along(v: Array, codes: list[Array], axis: int, windows: Windows, nan: bool) -> tuple[Array, list[Array]]:
    """Return the maxima of windows along one axis, and arrays of the k at which they are, for this and earlier axes.

    Args:
        codes: the arrays of k of the axes that have been reduced already, in which the maxima's are selected.
        nan: whether there are NaNs: the maximum of a window is then its last NaN.
    """
    count, parts = windows.many, windows.parts
    code: Any
    length = v.shape[axis]
    cut = (slice(None),) * axis
    if windows.first is None:
        where = parts[0][2]
        best, rest = _part(v, axis, where), range(1, len(parts))
        best = best.copy() if isinstance(where, slice) else best
        selected = [_part(code, axis, where).copy() for code in codes]
        code = np.zeros_like(v, dtype=np.uint8 if len(parts) < 256 else np.int32, shape=best.shape, order="C")
    else:
        at = windows.start + windows.first * windows.dilation
        inside = as_intp(np.clip(at, 0, length - 1))
        best, rest = v.take(inside, axis), range(len(parts))
        if (at >= length).any():  # a window with all its elements in the padding
            best[(*cut, at >= length)] = _lowest(v.dtype)
        selected = [code.take(inside, axis) for code in codes]
        code = np.zeros_like(v, dtype=np.uint8 if len(parts) < 256 else np.int32, shape=best.shape, order="C")
        code += windows.first.astype(code.dtype).reshape(-1, *[1] * (v.ndim - axis - 1))
    for k in rest:
        begin, end, where = parts[k]
        if begin == end:
            continue
        new = _part(v, axis, where)
        into: Any = (*cut, slice(begin, end)) if (begin, end) != (0, count) else ...
        old = best[into]
        higher = new > old
        if nan:
            higher |= np.isnan(new)
            np.copyto(old, new, where=higher)
        else:
            np.maximum(old, new, out=old)
        np.copyto(code[into], k, where=higher)
        for source, target in zip(codes, selected, strict=True):
            np.copyto(target[into], _part(source, axis, where), where=higher)
    return best, [code, *selected]


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind in FLOATS else np.iinfo(dtype).min


def _values(v: Array, axis: int, windows: Windows) -> Array:
    """Return the maxima of windows along one axis."""
    count = windows.many
    cut = (slice(None),) * axis
    if windows.first is None:
        best, rest = _part(v, axis, windows.parts[0][2]), windows.parts[1:]
        if rest and rest[0][:2] == (0, count):
            best, rest = np.maximum(best, _part(v, axis, rest[0][2])), rest[1:]
        else:
            best = best.copy()
    else:
        shape = (*v.shape[:axis], count, *v.shape[axis + 1 :])
        best, rest = np.full_like(v, _lowest(v.dtype), shape=shape, order="C"), windows.parts
    for begin, end, where in rest:
        old = best[(*cut, slice(begin, end))]
        np.maximum(old, _part(v, axis, where), out=old)
    return best


@twin
def maxima(x: Array, windows: tuple[Windows, ...], indexed: bool) -> tuple[Array, Any]:
    """Return the maximum of each window, and with `indexed` its index in the plane (int64), of equal ones the first."""
    planes, spatial = len(x), x.shape[1:]
    counts = tuple([axis.many for axis in windows])
    out = np.empty_like(x, shape=(planes, *counts), order="C")
    index = np.empty_like(x, dtype=np.int64, shape=out.shape, order="C") if indexed else None
    if not out.size:
        return out, index

    def work(begin: int, end: int) -> None:
        block = widened(x[begin:end])
        block_windows = tuple([_of_planes(axis, begin, end) for axis in windows])
        if index is None:
            for axis in range(len(block_windows), 0, -1):
                block = _values(block, axis, block_windows[axis - 1])
            out[begin:end] = block
            return
        best, codes = _maxima(block, block_windows, False)
        if best.dtype.kind in FLOATS and np.isnan(best).any():
            best, codes = _maxima(block, block_windows, True)
        out[begin:end] = best
        index[begin:end] = _index(codes, block_windows, spatial)

    blocks(work, planes, math.prod(spatial))
    return out, index


def _of_planes(windows: Windows, begin: int, end: int) -> Windows:
    if windows.start.ndim == 1:
        return windows
    parts = tuple([(a, b, where[begin:end]) for a, b, where in windows.parts])
    return windows._replace(start=windows.start[begin:end], parts=parts)


def _maxima(x: Array, windows: tuple[Windows, ...], nan: bool) -> tuple[Array, list[Array]]:
    codes: list[Array] = []
    for axis in range(len(windows), 0, -1):  # the last axis first: of equal maxima the first one in memory is taken
        x, codes = _along(x, codes, axis, windows[axis - 1], nan)
    return x, codes


def _index(codes: list[Array], windows: tuple[Windows, ...], spatial: tuple[int, ...]) -> Array:
    """Return the indices in the plane of elements, given the k of each axis at which they are in their windows."""
    total: Any = None
    for axis, (code, along) in enumerate(zip(codes, windows, strict=True)):
        shape = [1] * code.ndim
        shape[axis + 1] = along.many
        if along.start.ndim == 2:
            shape[0] = len(along.start)
        at = code.astype(np.int64)
        if along.dilation != 1:
            at *= along.dilation
        at += along.start.reshape(shape)
        if along.last is not None:
            np.minimum(at, along.last.reshape(shape), out=at)
        if total is None:
            total = at
        else:
            total *= spatial[axis]
            total += at
    return total


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
    if not g.size:
        return out
    flat, at, values = out.reshape(planes, size), index.reshape(planes, -1), g.reshape(planes, -1)
    check_bounds(at, size, 1)

    def work(begin: int, end: int) -> None:
        places = at[begin:end] + (np.arange(end - begin) * size)[:, None]
        target = flat[begin:end].reshape(-1)
        if distinct:
            target[places] = values[begin:end]
        else:
            weights = widened(values[begin:end]).reshape(-1)
            target[:] = np.bincount(as_intp(places.reshape(-1)), weights, (end - begin) * size)

    blocks(work, planes, size)
    return out


# Windows of 2 x 2 that do not overlap -------------------------------------------------------------
# A corner is kept as two booleans: whether it is in the right column, and whether it is in the lower row.


def _corners(x: Array, height: int, width: int) -> tuple[Array, ...]:
    """Return views of the corners of squares: upper left, upper right, lower left, lower right."""
    return tuple([x[..., row : 2 * height : 2, column : 2 * width : 2] for row in (0, 1) for column in (0, 1)])


def corner_pool(x: Array) -> tuple[Array, Array, Array]:
    """Return the maxima of squares of 2 x 2, and where they are."""
    out, right, lower = [each.reshape(*x.shape[:-2], *each.shape[1:]) for each in max_corners(_planes(x, 2), True)]
    return formatted(out, x), right, lower


def max_corner_values(x: Array) -> Array:
    """Return the maxima of squares of 2 x 2."""
    out, _, _ = max_corners(_planes(x, 2), False)
    return formatted(out.reshape(*x.shape[:-2], *out.shape[1:]), x)


def corner_pool_grad(g: Array, right: Array, lower: Array, spatial: tuple[int, int]) -> Array:
    """Return planes of zeros with the elements of `g` at the corners of squares of 2 x 2."""
    out = corner_grad(_planes(g, 2), _planes(right, 2), _planes(lower, 2), spatial)
    return out.reshape(*g.shape[:-2], *spatial)


@twin
def max_corners(x: Array, known: bool) -> tuple[Array, Any, Any]:
    """Return the maxima of squares of 2 x 2, and with `known` two masks that say which corner each is: right, lower."""
    planes, height, width = len(x), x.shape[1] // 2, x.shape[2] // 2
    out = np.empty_like(x, shape=(planes, height, width), order="C")
    right, lower = (np.empty_like(x, dtype=np.bool_, shape=out.shape, order="C") if known else None for _ in range(2))

    def work(begin: int, end: int) -> None:
        a, b, c, d = _corners(widened(x[begin:end]), height, width)
        upper, under = np.maximum(a, b), np.maximum(c, d)
        out[begin:end] = np.maximum(upper, under)
        if right is None or lower is None:
            return
        second, fourth, down = b > a, d > c, under > upper
        if x.dtype.kind in FLOATS and np.isnan(out[begin:end]).any():  # the last NaN of a square is its maximum
            second |= np.isnan(b)
            fourth |= np.isnan(d)
            down |= np.isnan(under)
        lower[begin:end] = down
        np.bitwise_xor(second, (second ^ fourth) & down, out=right[begin:end])

    if out.size:
        blocks(work, planes, 4 * height * width)
    return out, right, lower


@twin
def corner_grad(g: Array, right: Array, lower: Array, spatial: tuple[int, ...]) -> Array:
    """Return planes of zeros with the elements of `g` at the corners of squares of 2 x 2."""
    planes, height, width = g.shape
    out = np.zeros_like(g, shape=(planes, *spatial), order="C")

    def work(begin: int, end: int) -> None:
        block, down, side = g[begin:end], lower[begin:end], right[begin:end]
        masks = [up & left for up in (~down, down) for left in (~side, side)]
        for corner, mask in zip(_corners(out[begin:end], height, width), masks, strict=True):
            corner[...] = keep(block, mask)

    if g.size:
        blocks(work, planes, 4 * height * width)
    return out


def corner_pick(x: Array, right: Array, lower: Array) -> Array:
    """Return the elements of planes at the corners of squares of 2 x 2."""
    a, b, c, d = [corner.copy() for corner in _corners(x, *right.shape[-2:])]
    return choose(lower, choose(right, d, c), choose(right, b, a))


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


def spread(g: Array, windows: tuple[Windows, ...], spatial: tuple[int, ...], divisor: Any) -> Array:
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
