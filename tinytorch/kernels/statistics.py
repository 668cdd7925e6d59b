"""Order statistics and histograms of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .activation import widened
from .checks import refused
from .dtypes import FLOATS
from .indexing import gather
from .intp import as_int64, as_intp
from .meta import is_meta
from .native import twin
from .reduce import check_some, itself, kept_shape

Array = Any

_INT64 = np.dtype(np.int64)


# One element along a dimension --------------------------------------------------------------------


def _selected(x: Array, dim: int, keepdim: bool, index: Array) -> tuple[Array, Array]:
    index = as_int64(index)
    values = gather(x, dim, index)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _nothing(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Return the empty values and indices of a selection along `dim` when another dimension is empty."""
    shape = kept_shape(x.shape, dim)
    if not keepdim:
        shape = shape[:dim] + shape[dim + 1 :]
    return np.empty_like(x, shape=shape), np.empty_like(x, shape=shape, dtype=_INT64)


@twin
def median_dim(x: Array, dim: int, keepdim: bool = False, skip_nan: bool = False) -> tuple[Array, Array]:
    """Return the lower medians along `dim` and the index of each."""
    if not x.ndim and x.dtype.kind != "b":
        return itself(x)
    if x.ndim:
        check_some(x, (dim,), "median")
    if x.dtype.kind == "b":
        raise refused("median_cpu", x)
    if not x.size:
        return _nothing(x, dim, keepdim)
    return _selected(x, dim, keepdim, median_index(x, dim, skip_nan))


def nanmedian_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the lower medians of the numbers along `dim` that are not NaN, and the index of each."""
    return median_dim(x, dim, keepdim, True)


@twin
def median_all(x: Array, skip_nan: bool = False) -> Array:
    """Return the lower median of all elements."""
    if x.size:
        if x.dtype.kind == "b":
            raise refused("median_cpu", x)
        flat = x.reshape(-1)
        return flat[median_index(flat, 0, skip_nan)].reshape(())
    # NaN, as x86 converts it to the dtype.
    missing: Any = np.nan if x.dtype.kind in FLOATS else x.dtype.kind == "b"
    if x.dtype.kind == "i" and x.dtype.itemsize >= 4:
        missing = np.iinfo(x.dtype).min
    elif x.dtype == np.uint64:
        missing = 1 << 63
    return np.full_like(x, missing, shape=())


def nanmedian_all(x: Array) -> Array:
    """Return the lower median of all numbers that are not NaN."""
    return median_all(x, True)


def median_index(x: Array, axis: int, skip_nan: bool) -> Array:
    """Return the index of the lower median along `axis` (kept, of length 1).

    If there is a NaN, the result is the index of the first one, unless `skip_nan`.
    """
    length = x.shape[axis]
    if x.dtype.kind == "V":
        x = x.astype(np.float32)  # NumPy sorts NaN last only among its own types
    middle = (length - 1) // 2
    nan = np.isnan(x) if x.dtype.kind == "f" else None
    if nan is None or not nan.any():
        return np.argpartition(x, middle, axis).take([middle], axis)
    order = np.argsort(x, axis=axis, kind="stable")  # NaN last
    numbers = length - np.count_nonzero(nan, axis=axis, keepdims=True)
    if skip_nan:
        return np.take_along_axis(order, np.maximum(numbers - 1, 0) // 2, axis)
    index = order.take([middle], axis=axis)
    return np.where(numbers < length, np.argmax(nan, axis=axis, keepdims=True), index)


def mode(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Return the most frequent elements along `dim` and the index of each."""
    check_some(x, (dim,) if x.ndim else None, "mode")
    if not x.ndim:
        return itself(x)
    if not x.size:
        return _nothing(x, dim, keepdim)
    return _selected(x, dim, keepdim, mode_index(x, dim))


def mode_index(x: Array, axis: int) -> Array:
    """Return the index of the most frequent element along `axis` (kept, of length 1).

    Of equally frequent elements it is the smallest one, at its last index. NaNs are not equal to each other.
    """
    x = widened(x)
    order = np.argsort(x, axis=axis, kind="stable")
    ranked = np.take_along_axis(x, order, axis).swapaxes(axis, -1)
    steps = np.arange(x.shape[axis], like=x)
    fresh = np.ones(ranked.shape, np.bool_, like=x)
    fresh[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    begin = np.maximum.accumulate(np.where(fresh, steps, 0), axis=-1)
    # `steps - begin` counts equal elements before each: its first maximum is the end of the longest run.
    last = np.argmax(steps - begin, axis=-1, keepdims=True).swapaxes(axis, -1)
    return np.take_along_axis(order, last.copy("C"), axis)


def kthvalue(x: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """Return the k-th smallest elements along `dim` and the index of each; NaN counts as the largest."""
    if x.dtype.kind == "b":
        raise refused("kthvalue_cpu", x)
    check_some(x, (dim,) if x.ndim else None, "kthvalue")
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if not x.ndim:
        return itself(x)
    if not x.size:
        return _nothing(x, dim, keepdim)
    order = np.argpartition(widened(x), k - 1, axis=dim)
    return _selected(x, dim, keepdim, order.take([k - 1], axis=dim))


# Histograms ---------------------------------------------------------------------------------------


def outer_edges(columns: list[Array], bounds: Any, name: str, widen: float) -> list[tuple[float, float]]:
    """Return the lower and the upper bound of the values that are counted, per column.

    Args:
        columns: the vectors to compute the histogram of.
        bounds: (lower, upper) per column; None for the minimum and maximum of the data.
        name: the function, for error messages.
        widen: the amount by which equal bounds are moved apart on both sides.

    Raises:
        RuntimeError: they are not finite, or in the wrong order.
    """
    edges = []
    for d, column in enumerate(columns):
        if bounds is not None:
            low, high = bounds[d]
        elif column.size:
            low, high = column.min(), column.max()
        else:
            low, high = 0.0, 1.0
        if not (math.isfinite(low) and math.isfinite(high)):
            which = "" if name.endswith("histc") else f"dimension {d}'s "
            raise RuntimeError(f"{name}: {which}range of [{low}, {high}] is not finite")
        if low > high:
            if name.endswith("histc"):
                raise RuntimeError(f"{name}: max must be larger than min")
            raise RuntimeError(f"{name}: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}")
        if low == high:
            low, high = low - widen, high + widen
        edges.append((low, high))
    return edges


def histogram(
    x: Array, weight: Array | None, columns: Sequence[Array], edges: Sequence[Array], density: bool
) -> tuple[Array, ...]:
    """Return the histogram of points whose coordinates are `columns`, in the dtype of `x`, and the edges."""
    if columns:
        out = _counted(columns, edges, None if weight is None else weight.reshape(-1), x.dtype)
    else:
        out = np.zeros_like(x, shape=())  # (as in PyTorch, no point is counted)
    if density:
        out = out / out.sum()
        for d, edge in enumerate(edges):
            out = out / np.diff(edge).reshape((-1,) + (1,) * (len(edges) - d - 1))
    return (out, *edges)


def _counted(columns: Sequence[Array], edges: Sequence[Array], weight: Array | None, dtype: Any) -> Array:
    """Return the number of points (or sum of weights) in each bin between edges; the last bin includes both edges."""
    shape = tuple([len(edge) - 1 for edge in edges])
    inside: Any = True
    place: Any = 0
    for column, edge in zip(columns, edges, strict=True):
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        bin_index = np.searchsorted(edge, column, side="right") - 1
        place = place * (len(edge) - 1) + np.clip(bin_index, 0, len(edge) - 2)
    return _total(place, inside, weight, shape, dtype)


def histc(x: Array, bins: int, bounds: list[tuple[float, float]] | None) -> Array:
    """Return the number of elements in each of `bins` equal parts of the bounds, or of the range of the elements."""
    if is_meta(x):
        return np.empty_like(x, shape=bins)
    x = x.reshape(-1)
    ((low, high),) = outer_edges([x], bounds, "torch.histc", 1.0)
    return counted_evenly(x, bins, low, high)


def counted_evenly(x: Array, bins: int, low: float, high: float) -> Array:
    """Return the number of elements in each of `bins` equal parts of [low, high], in the dtype of `x`."""
    real = x.dtype.type  # 16-bit floats are rounded after each operation, as in PyTorch
    low, high = real(low), real(high)
    inside = (x >= low) & (x <= high)
    place = ((x[inside] - low) * real(bins) / (high - low)).astype(_INT64)
    return _total(np.minimum(place, bins - 1), None, None, (bins,), x.dtype)


def _total(place: Array, inside: Array | None, weight: Array | None, shape: tuple[int, ...], dtype: Any) -> Array:
    if inside is not None and not inside.all():
        place = place[inside]
        weight = None if weight is None else weight[inside]
    out = np.bincount(as_intp(place), weight, math.prod(shape))
    return out.astype(dtype).reshape(shape)


# Segments -----------------------------------------------------------------------------------------


def segments_of(counts: Array, rows: int) -> Array:
    """Return the number of the segment of each row, of segments of `counts` rows that are `rows` together."""
    if is_meta(counts):
        return np.empty(rows, _INT64, like=counts)
    return as_int64(np.repeat(np.arange(counts.size, like=counts), as_intp(counts.reshape(-1))))


def already_reduced(rows: Array, reduced: Array, which: Array, first: Array) -> Array:
    """Return the reductions of segments of `rows`, which have been computed: the op has their gradient."""
    return reduced
