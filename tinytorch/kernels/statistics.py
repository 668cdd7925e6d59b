"""Order statistics and histograms of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.kernels.activation import widened

Array = Any

_INT64 = np.dtype(np.int64)


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


def kth_index(x: Array, k: int, axis: int) -> Array:
    """Return the index of the k-th smallest element along `axis` (kept, of length 1); NaN counts as the largest."""
    order = np.argpartition(widened(x), k - 1, axis=axis)
    return order.take([k - 1], axis=axis)


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


def counted(columns: list[Array], edges: list[Array], weight: Array | None, dtype: Any) -> Array:
    """Return the number of points (or sum of weights) in each bin between edges; the last bin includes both edges."""
    shape = tuple([len(edge) - 1 for edge in edges])
    inside: Any = True
    place: Any = 0
    for column, edge in zip(columns, edges, strict=True):
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        bin_index = np.searchsorted(edge, column, side="right") - 1
        place = place * (len(edge) - 1) + np.clip(bin_index, 0, len(edge) - 2)
    return _total(place, inside, weight, shape, dtype)


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
    out = np.bincount(place, weight, math.prod(shape))
    return out.astype(dtype).reshape(shape)
