"""Convolutions of one to three spatial dimensions, as matrix products.

`conv`, `conv_input` and `conv_weight` are one trilinear form of input `x`, weight `w` and output `y`: each function
returns the one of the three that is missing, so each is the gradient of the others.

The general form copies the zero-padded images to a matrix of columns `(C * taps, N * places)`: one row per input
channel and kernel element (tap), one column per sample and place of the output. The convolution is the product of the
weight `(O, C * taps)` with it (im2col); the input's gradient is the product with the weight's transpose, whose rows are
added up at the places they were copied from (col2im); the weight's gradient is the product of the output with the
transposed columns. Kernels of size 1 need no columns.

Memory: besides the result, there are the columns of as many samples as fit into about `_COLUMNS` elements (4 MiB of
float32), at least those of one sample.

Source: Chellapilla et al., "High Performance Convolutional Neural Networks for Document Processing", 2006 (columns).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .activation import widened
from .meta import copied
from .native import twin
from .shape import channels_last, with_channels_last

Array = Any
Sizes = tuple[int, ...]

_COLUMNS = 1 << 20  # elements of columns that are held at a time


def conv_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """Return the spatial sizes of a convolution's output."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def transposed_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, extra: Sizes, dilation: Sizes) -> Sizes:
    """Return the spatial sizes of a transposed convolution's output; `extra` is its output padding."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, e, d in zip(size, kernel, stride, padding, extra, dilation, strict=True)
    )


# Columns ------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _taps(kernel: Sizes, places: Sizes, stride: Sizes, dilation: Sizes) -> list[Any]:
    """Return per kernel element the index of the elements of padded images `(N, C, *)` that it meets."""
    taps = []
    for offsets in itertools.product(*[range(k) for k in kernel]):
        met = [
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offsets, dilation, places, stride, strict=True)
        ]
        taps.append((slice(None), slice(None), *met))
    return taps


def _inside(size: Sizes, padding: Sizes) -> Any:
    """Return the index of the images in padded ones."""
    return (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])


def _zeros_around(x: Array, size: Sizes, padding: Sizes) -> Array:
    """Return zeros of the shape of images `(N, C, *size)` with padding, `(N, C)` as those of `x`."""
    padded = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    return np.zeros_like(x, shape=(*x.shape[:2], *padded), order="C")


def _padded(x: Array, padding: Sizes) -> Array:
    """Return images with zeros around them."""
    if not any(padding):
        return x
    size = x.shape[2:]
    padded = _zeros_around(x, size, padding)
    padded[_inside(size, padding)] = x
    return padded


def _columns(x: Array, taps: list[Any], places: Sizes, padding: Sizes) -> Array:
    """Return the columns of images `(N, C, *)`, as `(C, taps, N, *places)`."""
    samples, channels = x.shape[:2]
    columns = np.empty_like(x, shape=(channels, len(taps), samples, *places), order="C")
    padded = _padded(x, padding).swapaxes(0, 1)
    for t, tap in enumerate(taps):
        columns[:, t] = padded[tap]
    return columns


def _added_up(columns: Array, taps: list[Any], size: Sizes, padding: Sizes) -> Array:
    """Return images `(N, C, *size)`, each element the sum of the columns' elements `_columns` copies it to."""
    padded = _zeros_around(columns[:, 0], size, padding)
    for t, tap in enumerate(taps):
        padded[tap] += columns[:, t]
    return padded[_inside(size, padding)].swapaxes(0, 1)


def _pieces(samples: int, columns: int) -> Iterator[slice]:
    """Yield the pieces of the batch whose columns are held at a time; a sample has so many elements of columns."""
    step = max(_COLUMNS // max(columns, 1), 1)
    for start in range(0, samples, step):
        yield slice(start, start + step)


# The three sides ----------------------------------------------------------------------------------


def _is_pointwise(kernel: Sizes, stride: Sizes, padding: Sizes, size: Sizes, places: Sizes) -> bool:
    """Return whether a convolution is a product per sample, of matrices large enough for it to pay."""
    return set(kernel) == {1} == set(stride) and not any(padding) and size == places and math.prod(places) >= 64


@twin
def conv(
    x: Array, w: Array, b: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int, size: Sizes | None = None,
) -> Array:  # fmt: skip
    """Return the convolution of `x` `(N, C, ...)` with `w` `(O, C / groups, ...)`, plus `b` `(O,)`.

    Args:
        stride, padding, dilation: per spatial dimension.
        groups: how many groups of channels there are, each convolved with its part of the weight.
        size: the spatial sizes of the result, if it is to be smaller than what fits.
    """
    kernel = w.shape[2:]
    if size is None:
        size = conv_size(x.shape[2:], kernel, stride, padding, dilation)
    if (wide := widened(x)) is not x:
        b = None if b is None else widened(b)
        return conv(wide, widened(w), b, stride, padding, dilation, groups, size).astype(x.dtype)
    samples, rows = x.shape[0], w.shape[0]
    out = np.empty_like(x, shape=(samples, rows, *size), order="C")
    if not out.size or not w.size:
        out[...] = 0
    elif _is_pointwise(kernel, stride, padding, x.shape[2:], size):
        np.matmul(_matrix(w, groups), _per_group(x, groups), out=_per_group(out, groups))
    else:
        matrix, taps = _matrix(copied(w, x), groups), _taps(kernel, size, stride, dilation)
        for piece in _pieces(samples, x.shape[1] * len(taps) * math.prod(size)):
            columns = _columns(x[piece], taps, size, padding).reshape((groups, matrix.shape[2], -1))
            out[piece] = np.matmul(matrix, columns).reshape((rows, -1, *size)).swapaxes(0, 1)
    if b is not None:
        out += b.reshape((-1, *(1,) * len(size)))
    return out


def _matrix(w: Array, groups: int) -> Array:
    """Return a weight as one matrix per group, `(groups, O / groups, C / groups * taps)`."""
    return w.reshape((groups, w.shape[0] // groups, -1))


def _per_group(x: Array, groups: int) -> Array:
    """Return images as matrices `(N, groups, channels / groups, places)`."""
    return x.reshape((x.shape[0], groups, x.shape[1] // groups, -1))


@twin
def conv_input(y: Array, w: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """Return the gradient of an input of spatial sizes `size`, where `y` is the gradient of the output.

    It is also the transposed convolution of `y` with `w` `(channels of y, channels of the result / groups, ...)`.
    """
    if (wide := widened(y)) is not y:
        return conv_input(wide, widened(w), size, stride, padding, dilation, groups).astype(y.dtype)
    kernel, places, samples, rows = w.shape[2:], y.shape[2:], y.shape[0], w.shape[0]
    channels = w.shape[1] * groups
    out = np.empty_like(y, shape=(samples, channels, *size), order="C")
    if not out.size or not y.size or not w.size:
        out[...] = 0
    elif _is_pointwise(kernel, stride, padding, size, places):
        np.matmul(_matrix(w, groups).swapaxes(1, 2), _per_group(y, groups), out=_per_group(out, groups))
    else:
        matrix, taps = _matrix(copied(w, y), groups).swapaxes(1, 2), _taps(kernel, places, stride, dilation)
        for piece in _pieces(samples, channels * len(taps) * math.prod(places)):
            upstream = y[piece].swapaxes(0, 1).reshape((groups, rows // groups, -1))
            columns = np.matmul(matrix, upstream).reshape((channels, len(taps), -1, *places))
            out[piece] = _added_up(columns, taps, size, padding)
    return out


@twin
def conv_weight(
    x: Array, y: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return the gradient of a weight of spatial sizes `kernel`, where `y` is the gradient of the output."""
    if (wide := widened(x)) is not x:
        return conv_weight(wide, widened(y), kernel, stride, padding, dilation, groups).astype(x.dtype)
    samples, channels, rows, places = x.shape[0], x.shape[1], y.shape[1], y.shape[2:]
    shape = (rows, channels // groups, *kernel)
    if not x.size or not y.size or not math.prod(shape):
        return np.zeros_like(x, shape=shape, order="C")
    if _is_pointwise(kernel, stride, padding, x.shape[2:], places) and 2 * rows * (channels // groups) <= math.prod(
        places
    ) * (rows + channels):
        out = np.add.reduce(np.matmul(_per_group(y, groups), _per_group(x, groups).swapaxes(2, 3)), axis=0)
        return out.reshape(shape)
    taps = _taps(kernel, places, stride, dilation)
    length = channels // groups * len(taps)
    out = np.zeros_like(x, shape=(groups, rows // groups, length), order="C")
    for piece in _pieces(samples, channels * len(taps) * math.prod(places)):
        columns = _columns(x[piece], taps, places, padding).reshape((groups, length, -1))
        upstream = y[piece].swapaxes(0, 1).reshape((groups, rows // groups, -1))
        out += np.matmul(upstream, columns.swapaxes(1, 2))
    return out.reshape(shape)


# In the memory format of the input ----------------------------------------------------------------


def convolution(
    x: Array, w: Array, b: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, size: Sizes | None
) -> Array:
    """Return `conv` of the arguments in the memory format of input or weight."""
    return _formatted(conv(x, w, b, stride, padding, dilation, groups, size), x, w)


def transposed_convolution(
    y: Array, w: Array, b: Array | None, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return `conv_input` of the arguments, plus `b`, in the memory format of input or weight."""
    out = conv_input(y, w, size, stride, padding, dilation, groups)
    if b is not None:
        out += b.reshape((-1, *(1,) * len(size)))
    return _formatted(out, y, w)


def _formatted(out: Array, x: Array, w: Array) -> Array:
    """Return a convolution's result in the memory format of its input or its kernels, whichever has its channels last.

    PyTorch's kernels do so, and later ops that draw random numbers (`dropout`) draw them in the order of memory. For
    volumes PyTorch has such kernels in single precision only.
    """
    for each in (x, w):
        strides = each.strides
        if strides[1] <= strides[-1] and channels_last(each):
            return out if out.ndim == 5 and out.dtype.itemsize != 4 else with_channels_last(out)
    return out


# Columns as ops -----------------------------------------------------------------------------------


def unfold(x: Array, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """Return the columns of images `(N, C, H, W)`: `(N, C * taps, places)`."""
    places = conv_size(x.shape[2:], kernel, stride, padding, dilation)
    taps, padded = _taps(kernel, places, stride, dilation), _padded(x, padding)
    out = np.empty_like(x, shape=(*x.shape[:2], len(taps), *places), order="C")
    for t, tap in enumerate(taps):
        out[:, :, t] = padded[tap]
    return out.reshape((x.shape[0], x.shape[1] * len(taps), math.prod(places)))


def fold(x: Array, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """Return images `(N, C, *size)` that columns `(N, C * taps, places)` add up to."""
    places = conv_size(size, kernel, stride, padding, dilation)
    taps = _taps(kernel, places, stride, dilation)
    columns = widened(x).reshape((x.shape[0], x.shape[1] // len(taps), len(taps), *places))
    padded = _zeros_around(columns, size, padding)
    for t, tap in enumerate(taps):
        padded[tap] += columns[:, :, t]
    out = padded[_inside(size, padding)] if any(padding) else padded
    return out.astype(x.dtype, order="C", copy=out is not padded)
