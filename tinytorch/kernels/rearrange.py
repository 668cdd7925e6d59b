"""Copies with repeated, reordered, padded or shuffled elements, and triangles of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import layouts
from .checks import check_fits, refused
from .intp import as_intp
from .native import twin
from .reduce import axes_of, axis_of, int_of
from .shape import formatted, suggested_format

Array = Any


def repeat(x: Array, repeats: tuple[int, ...]) -> Array:
    """Return a copy repeated along each dimension; extra leading repeats add new dimensions."""
    if len(repeats) < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if min(repeats, default=0) < 0:
        lengths = (1,) * (len(repeats) - x.ndim) + x.shape
        sizes = [n * length for n, length in zip(repeats, lengths, strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    return np.tile(x, repeats)


def interleaved(counts: Array, output_size: Any) -> Array:
    """Return each index `i` repeated `counts[i]` times."""
    if counts.dtype not in (np.int32, np.int64):
        raise refused("repeat_interleave_cpu", counts)
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    indices = np.repeat(np.arange(counts.size, like=counts), as_intp(counts))
    if output_size is not None and indices.size != output_size:
        raise RuntimeError("allocated size does not match required size")
    return indices.astype(counts.dtype, copy=False)


@twin
def flip(x: Array, dims: tuple[int, ...]) -> Array:
    """Return a copy in reverse order along dimensions, with the dimensions in the same order in memory."""
    return _reversed(x, (axes_of(dims, x.ndim, "flip") or ()) if dims else ())


def _reversed(x: Array, axes: Sequence[int]) -> Array:
    key = [slice(None)] * x.ndim
    for axis in axes:
        key[axis] = slice(None, None, -1)
    made = layouts.empty_like(x)
    made[...] = x[(*key, ...)]
    return made


def rot90(x: Array, k: int, dims: tuple[int, int]) -> Array:
    """Return a copy rotated k times by 90 degrees, from the first of `dims` to the second, laid out as PyTorch's."""
    k %= 4
    if k == 0:
        return x.copy("C")
    turned = _reversed(x, (dims, dims[1:], dims, dims[:1])[k])
    return turned if k == 2 else turned.swapaxes(*dims)


@twin
def roll(x: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """Return a copy with the elements shifted along dimensions; without dimensions, of the flattened array."""
    if not dims:
        return roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    out = x
    for shift, dim in zip(shifts, dims, strict=True):
        axis = axis_of(dim, x.ndim, "roll")
        before, first = (slice(None),) * axis, -shift % max(x.shape[axis], 1)
        out = np.concatenate((out[(*before, slice(first, None))], out[(*before, slice(first))]), axis)
    return _in_rows(out) if suggested_format(x) == "torch.contiguous_format" else out


def _in_rows(x: Array) -> Array:
    return x if x.flags.c_contiguous else x.copy("C")


@twin
def tril(x: Array, diagonal: int) -> Array:
    """Return the lower triangles of matrices."""
    return _in_rows(np.where(_is_lower(x, _checked("tril", x, diagonal)), x, x.dtype.type(0)))


@twin
def triu(x: Array, diagonal: int) -> Array:
    """Return the upper triangles of matrices."""
    return _in_rows(np.where(_is_lower(x, _checked("triu", x, diagonal) - 1), x.dtype.type(0), x))


def _is_lower(x: Array, diagonal: int) -> Array:
    """Return whether an element of a matrix of the last two dimensions is at or below a diagonal."""
    rows, columns = x.shape[-2:]
    return np.arange(rows)[:, None] >= np.arange(-diagonal, columns - diagonal)


def _checked(name: str, x: Array, diagonal: Any) -> int:
    """Return the diagonal as an int; raise PyTorch's error for an array that is no matrix."""
    diagonal = int_of(diagonal, name, "diagonal")
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return diagonal


def constant_pad(x: Array, pad: tuple[int, ...], value: Any) -> Array:
    """Return `x` padded with `value`; `pad` has pairs of widths, negative ones to crop, from the last dimension on."""
    shape = list(x.shape)
    inner, part = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for k in range(0, len(pad), 2):
        d = x.ndim - 1 - k // 2
        before, after = pad[k], pad[k + 1]
        length = shape[d]
        if before >= 0 and after >= 0:
            inner[d] = slice(before, before + length)
        elif length + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        else:
            inner[d] = slice(max(before, 0), length + before + min(after, 0))
            part[d] = slice(max(-before, 0), length + min(after, 0))
        shape[d] = length + before + after
    if max(pad, default=0) <= 0:
        return layouts.copy(x[tuple(part)])
    value = check_fits(x, value)
    laid_out = x.flags.c_contiguous or suggested_format(x) == "torch.contiguous_format"
    out = np.empty(shape, x.dtype, like=x) if laid_out else np.empty_like(x, order="K", shape=shape)
    out.fill(value)
    out[tuple(inner)] = x[tuple(part)]
    return out


def pixel_shuffle(x: Array, factor: int) -> Array:
    """Return (*, c * r * r, h, w) rearranged to (*, c, h * r, w * r)."""
    *batch, c, h, w = x.shape
    n = len(batch)
    split = x.reshape((*batch, c // factor**2, factor, factor, h, w))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return formatted(split.transpose(order).copy("C").reshape((*batch, c // factor**2, h * factor, w * factor)), x)


def pixel_unshuffle(x: Array, factor: int) -> Array:
    """Return (*, c, h * r, w * r) rearranged to (*, c * r * r, h, w)."""
    *batch, c, h, w = x.shape
    n = len(batch)
    split = x.reshape((*batch, c, h // factor, factor, w // factor, factor))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return formatted(split.transpose(order).copy("C").reshape((*batch, c * factor**2, h // factor, w // factor)), x)


def channel_shuffle(x: Array, groups: int) -> Array:
    """Return (n, c, *) with the channels of the groups interleaved."""
    batch, channels, *rest = x.shape
    split = x.reshape((batch, groups, channels // groups, *rest))
    return formatted(split.swapaxes(1, 2).copy().reshape(x.shape), x)
