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
from tinytorch.kernels.parallel import blocks

Array = Any

_SHORT = 32  # places per channel below which numbers per channel are repeated for each place


def places(x: Array) -> Array:
    """Return (N, C, *) as (N, C, M), contiguous."""
    shape = (*x.shape[:2], math.prod(x.shape[2:]))
    return np.ascontiguousarray(x).reshape(shape) if type(x) is np.ndarray else x.reshape(shape)


def _by_samples(work: Callable[[int, int], None], x: Array) -> None:
    """Call `work(begin, end)` for blocks of the samples of (N, C, M), in several threads where it is large."""
    blocks(work, len(x), math.prod(x.shape[1:]))


def _per_place(numbers: Array, count: int) -> Callable[[int, int], Array]:
    """Return what gives, for samples begin to end, numbers (N, C) or (1, C) so that they broadcast with (N, C, M).

    Where rows of places are short they are repeated: NumPy's inner loop is then over channels and places.
    """
    spread = np.repeat(numbers, count, 1).reshape(*numbers.shape, count) if count < _SHORT else numbers[..., None]
    return lambda begin, end: spread if len(spread) == 1 else spread[begin:end]


def _sums(x: Array) -> Array:
    """Return the sums over the places of (N, C, M), as (N, C): a product with ones is fastest."""
    samples, channels, count = x.shape
    if count == 1:
        return x[..., 0]
    return x.reshape(samples * channels, count).dot(np.ones_like(x, shape=count)).reshape(samples, channels)


def _statistics(x: Array, over_samples: bool) -> tuple[Array, Array]:
    """Return mean and (biased) variance over the places of (N, C, M), (N, C), or over samples and places, (1, C)."""
    count = max(x.shape[2] * (len(x) if over_samples else 1), 1)
    sums = np.empty_like(x, shape=x.shape[:2])

    def mean_of_sums() -> Array:
        return (sums.sum(0, keepdims=True) if over_samples else sums) / count

    def add(begin: int, end: int) -> None:
        sums[begin:end] = _sums(x[begin:end])

    _by_samples(add, x)
    mean = mean_of_sums()
    means = _per_place(mean, x.shape[2])

    def add_squares(begin: int, end: int) -> None:
        centered = x[begin:end] - means(begin, end)
        centered *= centered
        sums[begin:end] = _sums(centered)

    _by_samples(add_squares, x)
    return mean, mean_of_sums()


def batch_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and (biased) variance of each channel of (N, C, M), as (1, C)."""
    return _statistics(x, True)


def scaled(x: Array, factor: Array, summand: Array, dtype: Any) -> Array:
    """Return `x * factor + summand` of (N, C, M) and numbers (N, C) or (1, C)."""
    out = np.empty_like(x, dtype=dtype)
    factors, summands = _per_place(factor, x.shape[2]), _per_place(summand, x.shape[2])

    def work(begin: int, end: int) -> None:
        block = np.multiply(x[begin:end], factors(begin, end), out=out[begin:end] if out.dtype == x.dtype else None)
        block += summands(begin, end)
        if out.dtype != x.dtype:
            out[begin:end] = block

    _by_samples(work, x)
    return out


def products(g: Array, x: Array, mean: Array) -> tuple[Array, Array]:
    """Return the sums over the places of (N, C, M): of `g`, and of `g * (x - mean)`, as (N, C) both."""
    sums, dots = np.empty_like(g, shape=g.shape[:2]), np.empty_like(g, shape=g.shape[:2])
    means = _per_place(mean, x.shape[2])

    def work(begin: int, end: int) -> None:
        sums[begin:end] = _sums(g[begin:end])
        centered = x[begin:end] - means(begin, end)
        centered *= g[begin:end]
        dots[begin:end] = _sums(centered)

    _by_samples(work, x)
    return sums, dots


def combined(g: Array, x: Array, of_g: Array, of_x: Array, summand: Array, dtype: Any) -> Array:
    """Return `g * of_g + x * of_x + summand` of (N, C, M) and numbers (N, C) or (1, C)."""
    out = np.empty_like(x, dtype=dtype)
    factors_g, factors_x, summands = (_per_place(numbers, x.shape[2]) for numbers in (of_g, of_x, summand))

    def work(begin: int, end: int) -> None:
        block = x[begin:end] * factors_x(begin, end)
        block += summands(begin, end)
        term = g[begin:end] * factors_g(begin, end)
        np.add(block, term, out=out[begin:end], casting="same_kind")

    _by_samples(work, x)
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
    size = values.shape[1] // groups
    mean, variance = _statistics(values.reshape(len(values), groups, size * values.shape[2]), False)
    scale = 1 / np.sqrt(variance + values.dtype.type(eps))
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
