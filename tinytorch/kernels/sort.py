"""Sorting, the largest elements, searching, unique elements."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .indexing import gather
from .intp import as_int64, as_intp
from .layouts import arranged
from .meta import known
from .native import twin
from .reduce import axis_of, in_rows

Array = Any

_ALL = slice(None)
_INT64 = np.dtype(np.int64)
_SHORT = 32  # so many elements of a row are sorted by insertion
_FEW = 8  # so many elements of a row are kept in order while it is read, however short it is


def order(x: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort along `axis`; the sort is stable, and NaN counts as the largest."""
    if not x.flags.c_contiguous:
        return arranged(order(x.copy("C"), axis, descending), x)
    if x.dtype.kind == "V":
        x = x.astype(np.float32)  # bfloat16: NumPy sorts NaN last only among its own types
    if x.dtype == np.float32 and x.size > 64 and x.shape[axis] < 1 << 31:
        return _order_by_keys(x, axis, descending)
    if not descending:
        return as_int64(np.argsort(x, axis=axis, kind="stable"))
    backwards = tuple([slice(None, None, -1) if d == axis else _ALL for d in range(x.ndim)])
    # A stable sort of the reversed array, reversed: ties keep their order.
    return (x.shape[axis] - 1 - np.argsort(x[backwards], axis=axis, kind="stable")[backwards]).astype(
        _INT64, copy=False
    )


def _order_by_keys(x: Array, axis: int, descending: bool) -> Array:
    """Return the indices that sort float32, by sorting int64 keys of value and index, which NumPy does faster."""
    places = x.swapaxes(axis, -1) + np.float32(0)  # without -0
    bits = places.view(np.int32)
    bits[np.isnan(places)] = 0x7FC00000
    bits ^= (bits >> 31) & 0x7FFFFFFF  # integers in the order of the floats
    if descending:
        np.invert(bits, out=bits)
    keys = bits.astype(_INT64)
    keys <<= 32
    keys |= np.arange(keys.shape[-1])
    keys.sort()
    keys &= 0xFFFFFFFF
    return in_rows(keys.swapaxes(axis, -1))


def sort(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Return the sorted elements and their indices."""
    axis = axis_of(dim, x.ndim, "sort")
    if not x.ndim:
        return x.copy(), np.zeros((), _INT64, like=x)
    if axis == x.ndim - 1 and 0 < x.shape[axis] <= _SHORT and x.dtype == np.float32 and x.flags.c_contiguous:
        return few(x, x.shape[axis], descending)
    indices = order(x, axis, descending)
    values = gather(x, axis, indices)
    return arranged(values, x), indices


def topk(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """Return the k largest (or smallest) elements in order, and their indices."""
    axis = axis_of(dim, x.ndim, "topk")
    if x.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if x.dtype.kind == "V":
        values, indices = topk(x.astype(np.float32), k, dim, largest)
        return values.astype(x.dtype), indices
    length = x.shape[axis] if x.ndim else 1
    if not 0 <= k <= length:
        raise RuntimeError("selected index k out of range")
    if not x.ndim:
        return x.copy(), np.zeros((), _INT64, like=x)
    if k > _FEW and k * 8 >= length:
        return _first(x, k, axis, largest)
    if axis == x.ndim - 1:
        return few(in_rows(x), k, largest)
    values, indices = few(in_rows(x.swapaxes(axis, -1)), k, largest)
    return values.swapaxes(axis, -1).copy("C"), indices.swapaxes(axis, -1).copy("C")


def _first(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    """Return what `topk` returns, by sorting."""
    indices = order(x, axis, largest)[(*(_ALL,) * axis, slice(k))].copy("C")
    return gather(x, axis, indices), indices


@twin
def few(x: Array, k: int, largest: bool) -> tuple[Array, Array]:
    """Return the k largest (or smallest) elements of each row in order, and their indices, for k small."""
    length = x.shape[-1]
    if k * 8 >= length or length <= 64 or k == 0:  # NumPy sorts short rows faster than it partitions them
        return _first(x, k, x.ndim - 1, largest)
    if largest:
        indices = np.argpartition(x, length - k)[..., length - k :]
    else:
        indices = np.argpartition(x, k)[..., :k]
    indices = as_int64(np.sort(indices))
    part = np.take_along_axis(x, indices, -1)
    indices = np.take_along_axis(indices, order(part, x.ndim - 1, largest), -1)
    return np.take_along_axis(x, indices, -1), indices


@twin
def search(sorted_sequence: Array, values: Array, right: bool) -> Array:
    """Return where each value would be inserted into the (rows of the) sorted sequence."""
    floating = sorted_sequence.dtype.kind not in "iub"
    if sorted_sequence.ndim == 1 and not (floating and (_has_nan(values) or _has_nan(sorted_sequence[-1:]))):
        side: Any = "right" if right else "left"
        return as_int64(np.searchsorted(sorted_sequence, values, side=side))
    # Binary search for all values at once. As in PyTorch, NaN compares greater than all numbers as a value, and less
    # than all numbers in the sequence.
    length = sorted_sequence.shape[-1]
    begin = np.zeros_like(values, dtype=_INT64)
    end = np.full_like(begin, length)
    for _ in range(length.bit_length()):
        middle = (begin + end) >> 1
        at = np.minimum(middle, length - 1)
        if sorted_sequence.ndim == 1:
            middles = sorted_sequence[at]
        else:
            middles = np.take_along_axis(sorted_sequence, at, -1)
        ahead = ~(middles > values) if right else ~(middles >= values)
        ahead &= begin < end
        begin, end = np.where(ahead, middle + 1, begin), np.where(ahead, end, middle)
    return begin


def _has_nan(x: Array) -> bool:
    return known((x != x).any())


@twin
def unique2(x: Array) -> tuple[Array, Array, Array]:
    """Return the distinct elements in order, the index of each element in them, and counts."""
    if x.dtype.kind == "V":
        values, inverse, counts = unique2(x.astype(np.float32))
        return values.astype(x.dtype), inverse, counts
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return values, as_int64(inverse.reshape(x.shape)), as_int64(counts)


def unique_dim(x: Array, dim: int) -> tuple[Array, Array, Array]:
    """Return the distinct slices along `dim` in order, the index of each slice in them, and counts."""
    axis = _sliced(x, dim, "unique")
    if x.size == 0:
        none = np.zeros((0,), _INT64, like=x)
        return x.copy(), none, none
    if x.dtype.kind in "fV" and np.isnan(x).any():
        return _unique_rows(x, axis)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    return values, as_int64(inverse.reshape(-1)), as_int64(counts)


def _unique_rows(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """Return `unique` along an axis of an array with NaNs, which are neither equal to nor less than any number."""
    rows = np.moveaxis(x, axis, 0)
    flat_rows = rows.reshape(len(rows), -1)

    def before(i: int, j: int) -> int:
        a, b = flat_rows[i], flat_rows[j]
        differ = (a < b) | (a > b)
        if not differ.any():
            return 0
        first = int(differ.argmax())
        return -1 if a[first] < b[first] else 1

    order = np.array(sorted(range(len(rows)), key=functools.cmp_to_key(before)), _INT64)
    values, runs, counts = unique_runs(rows[order], 0)
    inverse = np.empty_like(runs)
    inverse[order] = runs
    return np.moveaxis(values, 0, axis), inverse, counts


def _sliced(x: Array, dim: int, name: str) -> int:
    """Return the axis whose slices are compared; raise PyTorch's errors for a 0-d array, and where slices are empty."""
    axis = axis_of(dim, x.ndim, name)
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if 0 in x.shape[:axis] + x.shape[axis + 1 :]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return axis


def unique_runs(x: Array, dim: int | None) -> tuple[Array, Array, Array]:
    """Return one element (or slice along `dim`) of each run of equal ones, the run of each, and the runs' lengths."""
    axis = 0 if dim is None else _sliced(x, dim, "unique_consecutive")
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, axis, 0)
    count = rows.shape[0]
    if not count:
        none = np.zeros((0,), _INT64, like=x)
        inverse = np.zeros(x.shape, _INT64, like=x) if dim is None else none
        return np.moveaxis(rows, 0, axis).copy("C"), inverse, none
    starts = np.ones(count, np.bool_, like=x)
    if count > 1:
        starts[1:] = (rows[1:] != rows[:-1]).reshape(count - 1, -1).any(axis=1)
    where = as_int64(np.flatnonzero(starts))
    inverse = np.cumsum(starts, dtype=_INT64) - 1
    counts = np.diff(where, append=count)
    values = rows[where]
    if dim is None:
        return values, inverse.reshape(x.shape), counts
    return np.moveaxis(values, 0, axis), inverse, counts


def bincount(weights: Array, places: Array, minlength: int) -> Array:
    """Return the sum of the weights at each place, for `minlength` places or more."""
    total = np.bincount(as_intp(places), weights, minlength)
    return total.astype(np.float32) if weights.dtype == np.float32 else total
