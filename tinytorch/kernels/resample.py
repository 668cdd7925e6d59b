"""Resampling: linear maps along the axes of an array, and values at the points of a grid.

Resizing an image multiplies it by one matrix from the left, for its columns, and by one from the right, for its rows.
They are band matrices: an element of the output depends on a few adjacent elements of the input. So a matrix is kept as
a list of its entries, and the product is computed block by block.

Sources: Keys, "Cubic convolution interpolation for digital image processing", 1981; for windows that grow with the
scale (antialiasing) Turkowski, "Filters for common resampling tasks", 1990.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .activation import widened
from .indexing import scattered
from .intp import as_intp
from .native import twin
from .parallel import blocks
from .shape import formatted

Array = Any
_DENSE = 128  # length of an axis up to which the product is one with the dense matrix


class _Entries(NamedTuple):
    rows: Array
    cols: Array
    weights: Array
    shape: tuple[int, int]


class Map(_Entries):
    """A sparse matrix: `out[row] = sum(weight * x[col])` over its entries. A tuple, so that programs can be saved.

    Attributes:
        rows, cols, weights: the entries, by row.
        shape: (length of the output, length of the input).
        pick: per row the column of its only entry, if every row has one entry, which is 1; else None.
        factor: n > 0 if the map repeats each element n times, -n if it sums n neighbours, 0 if it does neither.
    """

    def __init__(self, rows: Array, cols: Array, weights: Array, shape: tuple[int, int]) -> None:
        self.pick: Array | None = None
        self.factor = 0
        count, length = shape
        ones = bool((weights == 1).all())
        if ones and len(rows) == count and (rows == np.arange(count)).all():
            self.pick = cols
            if length and count % length == 0 and (cols == rows // (count // length)).all():
                self.factor = count // length
        elif (
            ones
            and len(rows) == length
            and count
            and length % count == 0
            and (cols == np.arange(length)).all()
            and (rows == cols // (length // count)).all()
        ):
            self.factor = -(length // count)
        self._dense: dict[Any, Array] = {}

    @functools.cached_property
    def transposed(self) -> Map:
        """The transpose of the matrix."""
        order = np.lexsort((self.rows, self.cols))
        back = Map(self.cols[order], self.rows[order], self.weights[order], self.shape[::-1])
        back.__dict__["transposed"] = self
        return back

    def dense(self, dtype: Any) -> Array:
        """Return the dense matrix."""
        matrix = self._dense.get(dtype)
        if matrix is None:
            matrix = np.zeros(self.shape, dtype)
            np.add.at(matrix, (self.rows, self.cols), self.weights.astype(dtype))
            self._dense[dtype] = matrix
        return matrix

    @functools.cached_property
    def taps(self) -> tuple[Array, Array]:
        """The columns and weights of the entries of each row, (rows, taps), padded with weights of 0."""
        count = self.shape[0]
        lengths = np.bincount(as_intp(self.rows), minlength=count)
        width = int(lengths.max()) if len(lengths) else 0
        starts = np.cumsum(lengths) - lengths
        place = np.arange(len(self.rows)) - starts[self.rows]
        index, weights = np.zeros((count, width), np.int64), np.zeros((count, width))
        index[self.rows, place], weights[self.rows, place] = self.cols, self.weights
        return index, weights


def _from_taps(index: Array, weights: Array, length: int) -> Map:
    """Return the map of rows with entries `weights` at `index`, both (rows, taps)."""
    count, width = index.shape
    kept = weights.reshape(-1) != 0
    rows = np.repeat(np.arange(count), width)[kept]
    return Map(rows, index.reshape(-1)[kept], weights.reshape(-1)[kept], (count, length))


# The maps -----------------------------------------------------------------------------------------


def _scale(length: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Any:
    """Return the distance between adjacent elements of the output, in elements of the input."""
    if align_corners:
        return kind(length - 1) / kind(count - 1) if count > 1 else kind(0)
    if factor is not None and factor > 0:
        return kind(1.0 / factor)
    return kind(length) / kind(count)


@functools.lru_cache(256)
def nearest(length: int, count: int, factor: float | None, exact: bool, short: bool) -> Map:
    """Return the map that takes the element at the rounded-down place, or with `exact` the nearest element.

    With `short`, `factor` is ignored if the output is as long as the input or twice as long.
    """
    places = np.arange(count)
    if short and count in (length, 2 * length):
        index = places // (count // length)
    else:
        scale = _scale(length, count, False, factor, np.float32)
        at = places.astype(np.float32)
        at = (at + np.float32(0.5)) * scale if exact else at * scale
        index = np.minimum(np.floor(at).astype(np.int64), length - 1)
    return Map(places, index, np.ones(count), (count, length))


@functools.lru_cache(256)
def linear(length: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Map:
    """Return linear interpolation between the two nearest elements; outside, the border is repeated."""
    if length == count:
        return Map(np.arange(count), np.arange(count), np.ones(count), (count, length))
    scale = _scale(length, count, align_corners, factor, kind)
    at = np.arange(count).astype(kind)
    at = at * scale if align_corners else np.maximum(scale * (at + kind(0.5)) - kind(0.5), 0)
    low = np.minimum(at.astype(np.int64), length - 1)
    high = np.minimum(low + 1, length - 1)
    t = np.clip(at - low.astype(kind), 0, 1).astype(np.float64)
    return _from_taps(np.stack([low, high], 1), np.stack([1 - t, t], 1), length)


def _cubic_weights(t: Any, a: float) -> list[Any]:
    """Return Keys' weights of the four elements around a place, which is at a distance t from the second."""
    return [_outer(t + 1, a), _inner(t, a), _inner(1 - t, a), _outer(2 - t, a)]


def _inner(x: Any, a: float) -> Any:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _outer(x: Any, a: float) -> Any:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


@functools.lru_cache(256)
def cubic(length: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Map:
    """Return cubic convolution of the four nearest elements, with a = -0.75; outside, the border is repeated."""
    scale = _scale(length, count, align_corners, factor, kind)
    at = np.arange(count).astype(kind)
    at = at * scale if align_corners else scale * (at + kind(0.5)) - kind(0.5)
    low = np.minimum(np.floor(at).astype(np.int64), length - 1)
    t = np.clip(at - low.astype(kind), 0, 1).astype(np.float64)
    index = np.clip(low[:, None] + np.arange(-1, 3), 0, length - 1)
    return _from_taps(index, np.stack(_cubic_weights(t, -0.75), 1), length)


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _keys(a: float) -> Callable[[Array], Array]:
    def weights(x: Array) -> Array:
        x = np.abs(x)
        return np.where(x < 1, _inner(x, a), np.where(x < 2, _outer(x, a), 0))

    return weights


def _lanczos(x: Array) -> Array:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


#: By mode the filter with antialiasing, the one without, and their width.
_FILTERS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array], int]] = {
    "bilinear": (_triangle, _triangle, 2),
    "bicubic": (_keys(-0.5), _keys(-0.75), 4),
    "lanczos": (_lanczos, _lanczos, 6),
}


@functools.lru_cache(256)
def filtered(mode: str, length: int, count: int, align_corners: bool, factor: float | None, kind: Any) -> Map:
    """Return interpolation with a filter whose width grows with the scale, so that every element contributes."""
    index, weights = _filter_taps(mode, length, count, align_corners, factor, kind, True)
    return _from_taps(index, weights, length)


def _filter_taps(
    mode: str, length: int, count: int, align_corners: bool, factor: float | None, kind: Any, antialias: bool
) -> tuple[Array, Array]:
    """Return the columns and weights of a filter, (rows, taps). Without antialiasing the border is repeated outside."""
    wide, narrow, width = _FILTERS[mode]
    scale = _scale(length, count, align_corners, factor, kind)
    stretch = scale if antialias and scale >= 1 else kind(1)
    support = kind(width * 0.5) * stretch
    shift = kind(0.5 if align_corners and not antialias else 0)
    center = scale * (np.arange(count).astype(kind) + kind(0.5) - shift)
    begin = np.floor(center - support + kind(0.5) + shift).astype(np.int64)
    end = np.floor(center + support + kind(0.5) + shift).astype(np.int64)
    if antialias:
        begin, end = np.maximum(begin, 0), np.minimum(end, length)
    longest = int((end - begin).max()) + (not antialias)
    index = begin[:, None] + np.arange(longest)
    places = index - center[:, None].astype(np.float64) + 0.5 - float(shift)
    weights = (wide if antialias else narrow)(places / float(stretch))
    if antialias:
        weights = np.where(index < end[:, None], weights, 0)
    weights /= weights.sum(1, keepdims=True)
    return np.clip(index, 0, length - 1), weights


@functools.lru_cache(256)
def fixed_point(
    mode: str, length: int, count: int, align_corners: bool, factor: float | None, antialias: bool
) -> tuple[Map, int]:
    """Return a filter with 16-bit fixed-point weights for images of bytes, and the number of fractional bits."""
    index, weights = _filter_taps(mode, length, count, align_corners, factor, np.float64, antialias)
    whole = _from_taps(index, weights, length)
    matrix = np.zeros((count, length))
    np.add.at(matrix, (whole.rows, whole.cols), whole.weights)
    bits, most = 0, float(matrix.max())
    while bits < 22 and int(0.5 + most * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    rows, cols = np.nonzero(matrix)
    scaled = matrix[rows, cols] * (1 << bits)
    rounded = np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5))
    return Map(rows, cols, rounded, (count, length)), bits


def apply_to_bytes(x: Array, maps: tuple[tuple[Map, int] | None, ...]) -> Array:
    """Return planes of bytes (planes, *spatial) mapped along their axes, the last first; results are rounded."""
    for axis in range(len(maps), 0, -1):
        pair = maps[axis - 1]
        if pair is None:
            continue
        index, weights = pair[0].taps
        x = bytes_along(x, axis, index, weights, pair[1])
    return x


@twin
def bytes_along(x: Array, axis: int, index: Array, weights: Array, bits: int) -> Array:
    """Return sums of bytes at `index` along an axis, times weights with `bits` binary places, both (rows, taps)."""
    shape = [1] * x.ndim
    shape[axis] = len(index)
    counted = (*x.shape[:axis], len(index), *x.shape[axis + 1 :])
    total = np.full_like(x, 1 << bits >> 1, dtype=np.int32, shape=counted, order="C")
    for at, weight in zip(index.T, weights.T, strict=True):
        total += x.take(as_intp(at), axis) * weight.astype(np.int32).reshape(shape)
    total >>= bits
    return np.clip(total, 0, 255).astype(np.uint8)


@functools.lru_cache(256)
def averages(length: int, count: int) -> Map:
    """Return the averages of `count` windows, whose lengths differ by 1 at most, that cover the axis."""
    start = np.arange(count) * length // max(count, 1)
    lengths = -(-(np.arange(1, count + 1) * length) // max(count, 1)) - start
    rows = np.repeat(np.arange(count), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Map(rows, start[rows] + within, 1 / lengths[rows], (count, length))


# Their application --------------------------------------------------------------------------------


@twin
def resample(x: Array, maps: tuple[Map | None, ...], keeps_format: bool = False) -> Array:
    """Return `x` with a linear map applied along each of its last axes; None leaves an axis as it is.

    With `keeps_format`, the channels are last in the memory of the result if they are last in that of `x`.
    """
    n = len(maps)
    planes = x.reshape(math.prod(x.shape[: x.ndim - n]), *x.shape[x.ndim - n :])
    out = _mapped(planes, maps)
    out = out.reshape(*x.shape[: x.ndim - n], *out.shape[1:])
    return formatted(out, x) if keeps_format else out


def _mapped(x: Array, maps: tuple[Map | None, ...]) -> Array:
    """Return planes (planes, *spatial) mapped along their axes."""
    counts = tuple([n if axis is None else axis.shape[0] for n, axis in zip(x.shape[1:], maps, strict=True)])
    if all(axis is None or axis.pick is not None for axis in maps):
        return _pick(x, maps, counts)
    if not x.size or 0 in counts:
        return np.zeros_like(x, shape=(len(x), *counts), order="C")
    # The axes that shrink the array most come first; of those that enlarge it, the last axis first.
    order = sorted(
        [k for k, axis in enumerate(maps) if axis is not None],
        key=lambda k: (min(counts[k] / max(x.shape[k + 1], 1), 1.0), -k),
    )

    wide = widened(x)
    out = _apply(wide, maps, order, False)
    flat = out.reshape(-1)
    if np.isnan(np.dot(flat, flat)):
        # Elements outside a tap's support were multiplied by 0, which gives NaN for infinities and NaN.
        out = _apply(wide, maps, order, True)
    return out.astype(x.dtype, copy=False)


def _apply(x: Array, maps: tuple[Map | None, ...], order: list[int], exact: bool) -> Array:
    for k in order:
        x = _multiply(x, maps[k], k + 1, exact)
    return x


def _multiply(x: Array, map: Any, axis: int, exact: bool) -> Array:
    """Return an array multiplied by a map along one axis; with `exact`, no element is multiplied by a weight of 0."""
    count, length = map.shape
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if axis == x.ndim - 1 and length <= _DENSE and not map.factor and not exact:
        # A product with the dense matrix: BLAS multiplies by many zeros in the time of gathering a few elements.
        return np.matmul(x.reshape(math.prod(x.shape[:-1]), length), map.dense(x.dtype).T).reshape(shape)
    out = np.empty_like(x, shape=shape, order="C")

    def work(begin: int, end: int) -> None:
        if map.factor < 0:
            _neighbours(x[begin:end], out[begin:end], -map.factor, axis)
        else:
            _by_taps(x[begin:end], out[begin:end], map, axis, exact)

    blocks(work, len(x), max(math.prod(x.shape[1:]), math.prod(shape[1:])))
    return out


def _neighbours(x: Array, out: Array, factor: int, axis: int) -> None:
    """Write into `out` the sums of so many neighbours each."""
    parts = [x[(*(slice(None),) * axis, slice(k, None, factor))] for k in range(factor)]
    np.add(parts[0], parts[1], out=out)
    for part in parts[2:]:
        out += part


def _by_taps(x: Array, out: Array, map: Any, axis: int, exact: bool) -> None:
    """Write the product of an array with a map along one axis into `out`, tap by tap."""
    index, weights = map.taps
    shape = [1] * x.ndim
    shape[axis] = len(index)
    if not index.shape[1]:
        out[...] = 0
    for k, (at, weight) in enumerate(zip(index.T, weights.T, strict=True)):
        part = x.take(as_intp(at), axis, mode="clip")
        part *= weight.astype(x.dtype).reshape(shape)
        if exact and not weight.all():
            part = np.where((weight != 0).reshape(shape), part, 0)
        if k:
            out += part
        else:
            out[...] = part


def _pick(x: Array, maps: tuple[Map | None, ...], counts: tuple[int, ...]) -> Array:
    """Return planes mapped by maps that only pick elements, of any dtype."""
    factors = [1 if axis is None else axis.factor for axis in maps]
    if all(factor > 0 for factor in factors):
        out = np.empty_like(x, shape=(len(x), *counts), order="C")
        if out.size:
            _repeat(x, out, factors)
        return out
    for k in sorted(range(len(maps)), key=lambda k: (counts[k] / max(x.shape[k + 1], 1), -k)):
        if (axis := maps[k]) is not None:
            x = x.take(as_intp(axis.pick), k + 1)
    return x


def _repeat(x: Array, out: Array, factors: list[int]) -> None:
    """Write into `out` the elements of planes, repeated along each axis by its factor."""
    target_shape, source_shape = [len(x)], [len(x)]
    for length, factor in zip(x.shape[1:-1], factors[:-1], strict=True):
        target_shape += [length, factor]
        source_shape += [length, 1]
    width = x.shape[-1] * factors[-1]
    target = out.reshape(*target_shape, width)

    def work(begin: int, end: int) -> None:
        part = x[begin:end]
        if factors[-1] > 1:  # the last axis first, by strided copies, then whole rows
            rows = np.empty_like(part, shape=(*part.shape[:-1], width), order="C")
            for k in range(factors[-1]):
                rows[..., k :: factors[-1]] = part
            part = rows
        target[begin:end] = part.reshape(end - begin, *source_shape[1:], width)

    blocks(work, len(x), math.prod(out.shape[1:]))


# Values at the points of a grid -------------------------------------------------------------------

#: The weights of the elements around a point, by ascending powers of its distance from the first (of cubic convolution,
#: with a = -0.75, from the second): of linear interpolation, of the nearest element, and of cubic convolution.
_WEIGHTS: tuple[tuple[tuple[float, ...], ...], ...] = (
    ((1.0, -1.0), (0.0, 1.0)),
    ((1.0,),),
    ((0.0, -0.75, 1.5, -0.75), (1.0, 0.0, -2.25, 1.25), (0.0, 0.75, 1.5, -1.25), (0.0, 0.0, -0.75, 0.75)),
)


def _reflect(at: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return coordinates reflected at two borders until they lie between them, and the derivative: 1 or -1."""
    if low == high:
        return np.zeros_like(at), np.zeros_like(at)
    span = high - low
    away = at - low
    flipped = away < 0
    away = np.abs(away)
    turns = np.floor(away / span)
    extra = away - turns * span
    even = turns % 2 == 0
    return np.where(even, extra + low, span - extra + low), np.where(even == flipped, -1, 1).astype(at.dtype)


def _inside(at: Array, length: int, padding: int, align_corners: bool) -> tuple[Array, Array]:
    """Return coordinates moved into the input by the padding mode, and the derivative; NaN becomes 0."""
    slope = np.ones_like(at)
    if padding == 2:
        low, high = (0.0, length - 1.0) if align_corners else (-0.5, length - 0.5)
        at, slope = _reflect(at, low, high)
    if padding:
        moved = ~((at > 0) & (at < length - 1))  # the border counts as outside
        at = np.clip(np.where(np.isnan(at), 0, at), 0, length - 1)
        slope = np.where(moved, 0, slope)
    return at, slope


def _whole(at: Array) -> Array:
    """Return coordinates rounded down to integers; those too large for an integer are set out of range."""
    return np.clip(np.nan_to_num(np.floor(at), nan=-1.0), -(2.0**40), 2.0**40).astype(np.int64)


def _weighted(
    place: Array, length: int, mode: int, padding: int, align_corners: bool, order: int
) -> list[tuple[Array, Array]]:
    """Return the elements of an axis that a point lies between, and their weights, differentiated `order` times."""
    scale = (length - 1) / 2 if align_corners else length / 2
    at = (place + 1) * scale if align_corners else ((place + 1) * length - 1) * 0.5
    slope: Any = 1
    if mode != 2:
        at, slope = _inside(at, length, padding, align_corners)
    if mode == 1:
        at = np.rint(at)
    low = _whole(at)
    t = at - np.floor(at)
    found = []
    for k, powers in enumerate(_WEIGHTS[mode]):
        for _ in range(order):
            powers = tuple([n * power for n, power in enumerate(powers)][1:])
        weight = functools.reduce(lambda value, power: value * t + power, reversed(powers), np.zeros_like(t))
        if len(powers) < 2:  # also where t is not finite
            weight = np.full_like(t, powers[0] if powers else 0)
        index = low + (k - (mode == 2))
        if mode == 2 and padding:
            index = _inside(index.astype(np.float64), length, padding, align_corners)[0].astype(np.int64)
        found.append((index, weight * (slope * scale) ** order if order and powers else weight))
    return found


def _taps(
    grid: Array, mode: int, padding: int, align_corners: bool, orders: tuple[int, ...], spatial: tuple[int, ...]
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield elements around each point: where (batch, 1, points) in a channel, whether in the input, and the weights.

    x, the first number of the grid, belongs to the last dimension.
    """
    places = [grid[..., -1 - k].reshape(len(grid), 1, math.prod(grid.shape[1:-1])) for k in range(len(spatial))]
    facts = zip(places, spatial, orders, strict=True)
    for tap in product(*[_weighted(at, n, mode, padding, align_corners, order) for at, n, order in facts]):
        flat: Any = 0
        used: Any = True
        weight: Any = 1
        for (index, part), length in zip(tap, spatial, strict=True):
            used = used & (index >= 0) & (index < length)
            flat = flat * length + np.clip(index, 0, length - 1)
            weight = weight * part
        # (Of cubic convolution, a weight that is not finite makes the result NaN also outside of the input.)
        yield flat, used, weight if mode == 2 else np.where(used, weight, 0)


@twin
def sample(x: Array, grid: Array, mode: int, padding: int, align_corners: bool, orders: tuple[int, ...]) -> Array:
    """Return `x` (N, C, *spatial) at the points of `grid` (N, *places, n): (N, C, *places).

    Args:
        x, grid: the input, and points in units of half of it, from its middle.
        mode: 0 for linear interpolation, 1 for the nearest element, 2 for cubic convolution.
        padding: 0 for zeros outside, 1 for the border, 2 for reflections.
        align_corners: whether -1 and 1 are the middles of the elements at the ends, or their outer edges.
        orders: how often the result is differentiated by the coordinate of each spatial dimension.
    """
    spatial = x.shape[2:]
    flat = x.reshape(*x.shape[:2], math.prod(spatial))
    out = np.zeros((*x.shape[:2], math.prod(grid.shape[1:-1])), x.dtype)
    for at, used, weight in _taps(grid, mode, padding, align_corners, orders, spatial):
        out += np.where(used, np.take_along_axis(flat, at, 2), 0) * weight
    return out.reshape(*x.shape[:2], *grid.shape[1:-1])


@twin
def spread_at(
    g: Array, grid: Array, mode: int, padding: int, align_corners: bool, orders: tuple[int, ...],
    spatial: tuple[int, ...],
) -> Array:  # fmt: skip
    """Return the transpose of `sample` as a map of `x`: (N, C, *spatial)."""
    lead = g.shape[:2]
    flat, shape = g.reshape(*lead, math.prod(g.shape[2:])), (*lead, math.prod(spatial))
    out: Any = 0
    for at, used, weight in _taps(grid, mode, padding, align_corners, orders, spatial):
        part = np.where(used, flat * weight, 0)
        out = out + scattered(part, shape, 2, np.broadcast_to(at, part.shape), False)
    return out.reshape(*lead, *spatial)


@twin
def slopes_at(
    g: Array, x: Array, grid: Array, mode: int, padding: int, align_corners: bool, orders: tuple[int, ...]
) -> Array:
    """Return the derivative of the sum of `g * sample(x, grid, ...)` by the grid."""
    slopes = [(g * sample(x, grid, mode, padding, align_corners, raised)).sum(1) for raised in each_raised(orders)]
    return np.stack(slopes[::-1], -1)


def each_raised(orders: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the orders of derivatives, once more by each dimension."""
    return [(*orders[:k], order + 1, *orders[k + 1 :]) for k, order in enumerate(orders)]
