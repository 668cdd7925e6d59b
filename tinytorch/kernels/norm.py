"""Batch and group normalisation on arrays.

All kernels see an input as (N, C, M): samples, channels, places. Mean and variance are those of a channel in all
samples (batch normalisation), or of a group of channels in one sample (group normalisation). The rest is the same for
both: each channel of each sample is multiplied by a factor and shifted by a summand, and so is the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .activation import widened
from .native import twin
from .reduce import mean as mean_of
from .reduce import total
from .shape import formatted

Array = Any


def places(x: Array) -> Array:
    """Return (N, C, *) as (N, C, M), contiguous."""
    shape = (*x.shape[:2], math.prod(x.shape[2:]))
    return np.ascontiguousarray(x).reshape(shape) if type(x) is np.ndarray else x.reshape(shape)


def _statistics(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return mean and (biased) variance of (N, C, M) over the places, (N, C), or over samples and places, (1, C).

    Those of no places are 0 and NaN.
    """
    mean = total(x, axes, True) / max(math.prod([x.shape[axis] for axis in axes]), 1)
    return mean[..., 0], mean_of(np.square(x - mean), axes, True)[..., 0]


def batch_statistics(x: Array) -> tuple[Array, Array]:
    """Return mean and (biased) variance of each channel of (N, C, M), as (1, C)."""
    return _statistics(x, (0, 2))


def scaled(x: Array, factor: Array, summand: Array, dtype: Any) -> Array:
    """Return `x * factor + summand` of (N, C, M) and numbers (N, C) or (1, C)."""
    out = x * factor[..., None]
    out += summand[..., None]
    return out.astype(dtype, copy=False)


def factors(mean: Array, scale: Array, weight: Array | None, bias: Array | None) -> tuple[Array, Array]:
    """Return factor and summand of `(x - mean) * scale * weight + bias`."""
    factor = scale if weight is None else scale * widened(weight)
    summand = -mean * factor
    return factor, summand if bias is None else summand + widened(bias)


@twin
def batch_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return x (N, C, *) normalised by the statistics of its channels.

    Further results are mean and variance, (C,), and mean and `1 / sqrt(variance + eps)`, (1, C).
    """
    values = places(widened(x))
    mean, variance = batch_statistics(values)
    spread = variance + values.dtype.type(eps)
    scale = 1 / np.sqrt(spread if eps else np.where(spread, spread, np.inf))  # (0 without any spread, as in PyTorch)
    out = scaled(values, *factors(mean, scale, weight, bias), x.dtype).reshape(x.shape)
    return out, mean[0], variance[0], mean, scale


@twin
def given_norm(x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float) -> Array:
    """Return x (N, C, *) normalised by the mean and variance passed for its channels, (C,)."""
    values = places(widened(x))
    scale = 1 / np.sqrt(widened(variance) + values.dtype.type(eps))
    pair = factors(widened(mean).reshape(1, -1), scale.reshape(1, -1), weight, bias)
    return scaled(values, *pair, x.dtype).reshape(x.shape)


@twin
def group_norm(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return x (N, C, *) normalised by groups of channels; their mean and `1 / sqrt(variance + eps)`, (N, groups)."""
    values = places(widened(x))
    size = values.shape[1] // groups
    mean, variance = _statistics(values.reshape(len(values), groups, size * values.shape[2]), (2,))
    scale = 1 / np.sqrt(variance + values.dtype.type(eps))
    pair = factors(np.repeat(mean, size, 1), np.repeat(scale, size, 1), weight, bias)
    return scaled(values, *pair, x.dtype).reshape(x.shape), mean, scale


def by_batch(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return the results of `batch_norm`, the first in the memory format of x."""
    out, *statistics = batch_norm(x, weight, bias, eps)
    return formatted(out, x), *statistics


def by_given(x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float) -> Array:
    """Return the result of `given_norm` in the memory format of x."""
    return formatted(given_norm(x, weight, bias, mean, variance, eps), x)


def by_group(x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    """Return the results of `group_norm`, the first in the memory format of x."""
    out, mean, scale = group_norm(x, groups, weight, bias, eps)
    return formatted(out, x), mean, scale


#: How often running statistics have been moved: their versions do not tell, as in PyTorch.
moved = [0]


def move(array: Array, new: Array, count: int, momentum: float) -> None:
    """Update a running statistic.

    Args:
        array, new: the running statistic, and the statistic of the batch.
        count: for a variance, the number of elements per channel; else 0.
        momentum: the weight of the new statistic.
    """
    moved[0] += 1
    blend(array, new, count, momentum)


@twin
def blend(array: Array, new: Array, count: int, momentum: float) -> None:
    """Write the weighted mean of a running statistic and a new one; arguments as of `move`."""
    if count:
        new = np.divide(new * count, count - 1)
    array[...] = ((1 - momentum) * widened(array) + momentum * new.reshape(array.shape)).astype(array.dtype)


@twin
def batch_norm_grad(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias of `batch_norm`.

    Args:
        g, x: the gradient of the result and the input, (N, C, *).
        weight: (C,), or None for ones.
        mean, scale: of the channels, (1, C); `scale` is 1 / sqrt(variance + eps).
        wanted: whether the gradient of the input is needed; otherwise an empty array is returned for it.
    """
    return _gradients(g, x, weight, mean, scale, wanted)


@twin
def group_norm_grad(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of `group_norm`, as `batch_norm_grad` does; `mean` and `scale` are (N, groups)."""
    return _gradients(g, x, weight, mean, scale, wanted)


def _gradients(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool
) -> tuple[Array, Array, Array]:
    weight = None if weight is None else widened(weight)
    upstream, values = places(widened(g)), places(widened(x))
    grad, of_weight, of_bias = gradients(upstream, values, weight, mean, scale, wanted, x.dtype)
    return np.zeros_like(x, shape=0) if grad is None else grad.reshape(x.shape), of_weight, of_bias


def gradients(
    g: Array, x: Array, weight: Array | None, mean: Array, scale: Array, wanted: bool, dtype: Any,
    across: Callable[[Array], tuple[Array, float]] | None = None,
) -> tuple[Array | None, Array, Array]:  # fmt: skip
    """Return the gradients of input, weight and bias for arrays (N, C, M); None for the input's if it is not wanted.

    Args:
        g, x: the gradient of the result, and the input.
        weight: (C,), or None for ones.
        mean, scale: of channels, (1, C), or of groups of channels in each sample, (N, groups).
        wanted: whether the gradient of the input is needed.
        dtype: of the input's gradient.
        across: for statistics of several processes' batches: takes two sums over this batch, (2, C), and returns
            them summed over all processes, and the number of places per channel in all batches.
    """
    samples, channels, count = x.shape
    size = channels // mean.shape[1] if mean.shape[1] else 1  # channels per group

    def per_channel(numbers: Array) -> Array:
        return numbers if size == 1 else np.repeat(numbers, size, 1)

    def per_group(numbers: Array) -> Array:
        weighted = numbers if weight is None else numbers * weight
        return weighted if size == 1 else weighted.reshape(len(mean), mean.shape[1], size).sum(2)

    sums, dots = total(g, (2,)), total(g * (x - per_channel(mean)[..., None]), (2,))
    number: float = size * count
    if len(mean) == 1:  # statistics over all samples
        sums, dots, number = sums.sum(0, keepdims=True), dots.sum(0, keepdims=True), samples * number
    of_weight, of_bias = (dots * per_channel(scale)).sum(0), sums.sum(0)
    if not wanted:
        return None, of_weight, of_bias
    if across is not None:
        (sums, dots), number = across(np.concatenate([sums, dots]))
    of_x = -per_group(dots) * scale**3 / (number or 1)
    summand = -per_group(sums) * scale / (number or 1) - of_x * mean
    of_g = per_channel(scale) if weight is None else per_channel(scale) * weight
    grad = x * per_channel(of_x)[..., None]
    grad += per_channel(summand)[..., None]
    grad += g * of_g[..., None]
    return grad.astype(dtype, copy=False), of_weight, of_bias
