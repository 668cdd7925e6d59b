"""Normalisation on arrays: means and variances of channels or groups, and what is made of them.

All kernels see an input as (N, C, M): samples, channels, places. A channel's mean and variance are of all samples
("batch"), those of a group of one sample's ("group"). What follows is the same for both: each channel of each sample is
multiplied and shifted by its own numbers, and so is the gradient.

Arrays are gone through in blocks that stay in the cache, shared among threads, so that memory is read once or twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.kernels.activation import widened
from tinytorch.kernels.native import twin
from tinytorch.kernels.parallel import BLOCK, LARGE, share

Array = Any

_NARROW = 32  # channels of fewer places are joined to rows of a sample


def places(x: Array) -> Array:
    """Return (N, C, *) as (N, C, M), contiguous."""
    shape = (*x.shape[:2], math.prod(x.shape[2:]))
    return np.ascontiguousarray(x).reshape(shape) if type(x) is np.ndarray else x.reshape(shape)


def _spread(numbers: Array, shape: tuple[int, ...]) -> tuple[Array, tuple[int, int]]:
    """Return numbers (N, C) or (1, C), one per channel, so that they broadcast with (N, C, M) as a matrix.

    Narrow channels are joined, (N, C * M): NumPy is slow where its inner loops are short. Others are rows, (N * C, M).
    """
    samples, channels, count = shape
    if count < _NARROW:
        spread = numbers if count == 1 else np.repeat(numbers, count, 1)
        return spread, (samples, channels * count)
    if numbers.shape[0] != samples:
        numbers = np.repeat(numbers, samples, 0)
    return numbers.reshape(-1, 1), (samples * channels, count)


def _blocks(work: Callable[[int, int, Array], None], like: Array) -> None:
    """Call `work(begin, end, space)` for blocks of the rows of a matrix, in several threads if it is large.

    `space` is memory for one block, used again for the next: it stays in the cache.
    """
    rows, columns = like.shape
    step = max(BLOCK // max(columns, 1), 1)

    def several(begin: int, end: int) -> None:
        space = np.empty_like(like, shape=(min(step, end - begin), columns))
        for start in range(begin, end, step):
            stop = min(start + step, end)
            work(start, stop, space[: stop - start])

    if rows * columns < LARGE:
        several(0, rows)
    else:
        share(several, rows)


def _part(numbers: Array, begin: int, end: int) -> Array:
    return numbers if numbers.shape[0] == 1 else numbers[begin:end]


def _row_sums(x: Array) -> Array:
    """Return the sums of a matrix's rows: a product with ones is fastest."""
    return x.dot(np.ones_like(x, shape=x.shape[1]))


def _row_statistics(x: Array) -> tuple[Array, Array]:
    """Return the mean of each row of a matrix, and the sum of the squares of the differences from it."""
    rows, columns = x.shape
    mean = np.empty_like(x, shape=rows)
    squares = np.empty_like(x, shape=rows)

    def work(begin: int, end: int, space: Array) -> None:
        block = x[begin:end]
        means = _row_sums(block)
        means /= columns
        mean[begin:end] = means
        np.subtract(block, means[:, None], out=space)
        squares[begin:end] = np.vecdot(space, space)

    _blocks(work, x)
    return mean, squares


def batch_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and (biased) variance of each channel of (N, C, M), as (1, C).

    Those of parts are put together by the formula of Chan, Golub and LeVeque, "Updating formulae and a pairwise
    algorithm for computing sample variances", 1979: so memory is read once, and nothing cancels.
    """
    samples, channels, count = x.shape
    if count >= _NARROW:
        means, squares = _row_statistics(x.reshape(samples * channels, count))
        means, squares = means.reshape(samples, channels), squares.reshape(samples, channels)
        mean = means.mean(0, keepdims=True)
        variance = squares.mean(0, keepdims=True) / count + np.square(means - mean).mean(0, keepdims=True)
        return mean, variance
    flat = x.reshape(samples, channels * count)
    ones = np.ones_like(flat, shape=samples)

    def of_channels(columns: Array) -> Array:
        sums = columns if count == 1 else columns.reshape(channels, count).sum(1)
        return (sums / max(samples * count, 1)).reshape(1, channels)

    mean = of_channels(ones.dot(flat))
    spread, _ = _spread(mean, x.shape)
    total = np.zeros_like(flat, shape=channels * count)
    step = max(BLOCK // max(channels * count, 1), 1)
    for begin in range(0, samples, step):
        difference = flat[begin : begin + step] - spread
        difference *= difference
        total += ones[: len(difference)].dot(difference)
    return mean, of_channels(total)


def group_statistics(x: Array, groups: int) -> tuple[Array, Array]:
    """Return mean and (biased) variance of each group of channels of each sample of (N, C, M), as (N, groups)."""
    samples, channels, count = x.shape
    length = channels // groups * count
    mean, squares = _row_statistics(x.reshape(samples * groups, length))
    squares /= length
    return mean.reshape(samples, groups), squares.reshape(samples, groups)


def scaled(x: Array, factor: Array, summand: Array, dtype: Any) -> Array:
    """Return `x * factor + summand` of (N, C, M) and numbers (N, C) or (1, C)."""
    factor, (rows, columns) = _spread(factor, x.shape)
    summand, _ = _spread(summand, x.shape)
    matrix = x.reshape(rows, columns)
    out = np.empty_like(matrix, dtype=dtype)
    direct = out.dtype == x.dtype

    def work(begin: int, end: int, space: Array) -> None:
        block = out[begin:end] if direct else space
        np.multiply(matrix[begin:end], _part(factor, begin, end), out=block)
        block += _part(summand, begin, end)
        if not direct:
            out[begin:end] = block

    _blocks(work, matrix)
    return out


def products(g: Array, x: Array, mean: Array) -> tuple[Array, Array]:
    """Return the sums over the places of (N, C, M): of `g`, and of `g * (x - mean)`, as (N, C) both."""
    samples, channels, count = x.shape
    spread, (rows, columns) = _spread(mean, x.shape)
    upstream, matrix = g.reshape(rows, columns), x.reshape(rows, columns)
    sums = np.empty_like(g, shape=(rows, columns if count == 1 else columns // count if count < _NARROW else 1))
    dots = np.empty_like(sums)

    def of_places(block: Array) -> Array:
        if count == 1:
            return block
        return _row_sums(block.reshape(-1, count)).reshape(len(block), -1)

    def work(begin: int, end: int, space: Array) -> None:
        block = upstream[begin:end]
        sums[begin:end] = of_places(block)
        np.subtract(matrix[begin:end], _part(spread, begin, end), out=space)
        if count >= _NARROW:
            dots[begin:end, 0] = np.vecdot(space, block)
        else:
            space *= block
            dots[begin:end] = of_places(space)

    if not count:
        sums = np.zeros_like(g, shape=(samples, channels))
        return sums, sums.copy()
    _blocks(work, matrix)
    return sums.reshape(samples, channels), dots.reshape(samples, channels)


def combined(g: Array, x: Array, of_g: Array, of_x: Array, summand: Array, dtype: Any) -> Array:
    """Return `g * of_g + x * of_x + summand` of (N, C, M) and numbers (N, C) or (1, C)."""
    of_g, (rows, columns) = _spread(of_g, x.shape)
    of_x, _ = _spread(of_x, x.shape)
    summand, _ = _spread(summand, x.shape)
    upstream, matrix = g.reshape(rows, columns), x.reshape(rows, columns)
    out = np.empty_like(matrix, dtype=dtype)

    direct = out.dtype == x.dtype

    def work(begin: int, end: int, space: Array) -> None:
        block = out[begin:end] if direct else np.empty_like(space)
        np.multiply(matrix[begin:end], _part(of_x, begin, end), out=block)
        block += _part(summand, begin, end)
        np.multiply(upstream[begin:end], _part(of_g, begin, end), out=space)
        block += space
        if not direct:
            out[begin:end] = block

    _blocks(work, matrix)
    return out


def factors(mean: Array, scale: Array, weight: Array | None, bias: Array | None) -> tuple[Array, Array]:
    """Return factor and summand of `(x - mean) * scale * weight + bias`."""
    factor = scale if weight is None else scale * widened(weight)
    summand = -mean * factor
    return factor, summand if bias is None else summand + widened(bias)


@twin
def batch_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return x (N, C, *) normalised by the statistics of its channels.

    Then mean and variance, (C,), and mean and `1 / sqrt(variance + eps)`, (1, C).
    """
    values = places(widened(x))
    mean, variance = batch_statistics(values)
    scale = 1 / np.sqrt(variance + values.dtype.type(eps))
    out = scaled(values, *factors(mean, scale, weight, bias), x.dtype).reshape(x.shape)
    return out, mean[0], variance[0], mean, scale


@twin
def given_norm(x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float) -> Array:
    """Return x (N, C, *) normalised by given statistics of its channels, (C,)."""
    values = places(widened(x))
    scale = 1 / np.sqrt(widened(variance) + values.dtype.type(eps))
    pair = factors(widened(mean).reshape(1, -1), scale.reshape(1, -1), weight, bias)
    return scaled(values, *pair, x.dtype).reshape(x.shape)


@twin
def group_norm(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return x (N, C, *) normalised by groups of channels; their mean and `1 / sqrt(variance + eps)`, (N, groups)."""
    values = places(widened(x))
    mean, variance = group_statistics(values, groups)
    scale = 1 / np.sqrt(variance + values.dtype.type(eps))
    size = values.shape[1] // groups
    pair = factors(np.repeat(mean, size, 1), np.repeat(scale, size, 1), weight, bias)
    return scaled(values, *pair, x.dtype).reshape(x.shape), mean, scale


@twin
def batch_norm_grad(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias of `batch_norm`.

    Args:
        g, x: the gradient of the result and the input, (N, C, *).
        weight: (C,), or None for ones.
        mean, scale: of the channels, (1, C); `scale` is 1 / sqrt(variance + eps).
        wanted: whether the input's is; else nothing is returned for it.
    """
    return _gradients(batch_gradients, g, x, weight, mean, scale, wanted)


@twin
def group_norm_grad(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    """Return what `batch_norm_grad` does for the statistics of groups, (N, groups)."""
    return _gradients(_group_gradients, g, x, weight, mean, scale, wanted)


def _gradients(
    kernel: Any, g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    weight = None if weight is None else widened(weight)
    upstream, values = places(widened(g)), places(widened(x))
    grad, of_weight, of_bias = kernel(upstream, values, weight, mean, scale, wanted, x.dtype)
    return np.zeros_like(x, shape=0) if grad is None else grad.reshape(x.shape), of_weight, of_bias


def batch_gradients(
    g: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    scale: Array,
    wanted: bool,
    dtype: Any,
    across: Callable[[Array], tuple[Array, float]] | None = None,
) -> tuple[Array | None, Array, Array]:
    """Return what `batch_norm_grad` does, for arrays (N, C, places); None where the input's gradient is not wanted.

    Args:
        dtype: of the input's gradient.
        across: where the statistics are those of several processes' batches: returns two sums over the batch, (2, C),
            over all of them, and how many places a channel has there.
    """
    samples, _, count = x.shape
    sums, dots = products(g, x, mean)
    sums, dots = sums.sum(0, keepdims=True), dots.sum(0, keepdims=True)
    grad_x = None
    if wanted:
        all_sums, all_dots, number = sums, dots, samples * count or 1
        if across is not None:
            (all_sums, all_dots), number = across(np.concatenate([sums, dots]))
        of_g = scale if weight is None else scale * weight
        per_element = of_g / number
        of_x = -per_element * np.square(scale) * all_dots
        grad_x = combined(g, x, of_g, of_x, -per_element * all_sums - of_x * mean, dtype)
    return grad_x, (dots * scale)[0], sums[0]


def _group_gradients(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool, dtype: Any
) -> tuple[Array | None, Array, Array]:
    samples, channels, count = x.shape
    groups = mean.shape[1]
    size = channels // groups

    def per_channel(numbers: Array) -> Array:
        return numbers if size == 1 else np.repeat(numbers, size, 1)

    def per_group(numbers: Array) -> Array:
        weighted = numbers if weight is None else numbers * weight
        return weighted.reshape(samples, groups, size).sum(2) / (size * count or 1)

    scales = per_channel(scale)
    sums, dots = products(g, x, per_channel(mean))
    grad_x = None
    if wanted:
        of_x = -per_group(dots) * scale**3
        summand = -per_group(sums) * scale - of_x * mean
        of_g = scales if weight is None else scales * weight
        grad_x = combined(g, x, of_g, per_channel(of_x), per_channel(summand), dtype)
    return grad_x, (dots * scales).sum(0), sums.sum(0)
