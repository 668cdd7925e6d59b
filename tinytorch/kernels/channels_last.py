"""Convolutions and products with packed weights, of arrays whose channels lie side by side, for inference.

Images are (N, H, W, C). The weight of a convolution is packed once, before the first call, and what follows the
convolution (bias, residual, activation) is done in its epilogue: where each sum is stored.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .activation import gelu, hardsigmoid, hardswish, hardtanh, relu, sigmoid, silu
from .conv import conv_size
from .native import twin
from .products import linear

Array = Any
Sizes = tuple[int, ...]
F = TypeVar("F", bound=Callable[..., Any])

#: Outputs of a panel of a packed weight; equal to PANEL of native/channels_last.c.
PANEL = 16

# What is computed once -----------------------------------------------------------------------------


def _is_depthwise(shape: Sizes, groups: int) -> bool:
    return groups > 1 and shape[1] == 1 and shape[0] == groups


def packed_shape(shape: Sizes, groups: int) -> Sizes:
    """Return the shape of a packed weight; `shape` is that of the weight."""
    of = 1 if _is_depthwise(shape, groups) else groups
    return of * -(-(shape[0] // of) // PANEL), math.prod(shape[2:]), shape[1], PANEL


def packed(w: Array, groups: int = 1) -> Array:
    """Return a weight `(O, C / groups, *kernel)` as panels of outputs `(panels, taps, C / groups, PANEL)`.

    The panels of a group follow those of the one before; the last one is filled up with zeros. The panels of a
    depthwise convolution, where each group has one channel and one output, have the outputs of several groups.
    """
    outputs, channels = w.shape[:2]
    count, taps, *_ = packed_shape(w.shape, groups)
    groups = 1 if _is_depthwise(w.shape, groups) else groups
    panels = count // groups
    rows = np.zeros((groups, panels * PANEL, channels, taps), w.dtype)
    rows[:, : outputs // groups] = w.reshape((groups, outputs // groups, channels, taps))
    rows = rows.reshape((groups * panels, PANEL, channels, taps))
    return np.ascontiguousarray(rows.transpose((0, 3, 2, 1)))


def padded_bias(b: Array | None, w: Array) -> Array:
    """Return the bias of a weight with PANEL zeros after it; of zeros for None."""
    out = np.zeros((w.shape[0] + PANEL,), w.dtype)
    if b is not None:
        out[: w.shape[0]] = b
    return out


def prepared(w: Array, b: Array | None, groups: int, changes: tuple[tuple[Any, ...], ...]) -> tuple[Array, Array]:
    """Return weight and bias as `packed` and `padded_bias` do, after changes.

    Args:
        changes: functions that return a new weight and bias, each with its arguments after these two.
    """
    w, b = changed(w, b, changes)
    return packed(w, groups), padded_bias(b, w)


def changed(w: Array, b: Array | None, changes: tuple[tuple[Any, ...], ...]) -> tuple[Array, Array | None]:
    """Return weight and bias after changes, as in `prepared`."""
    for change, *values in changes:
        w, b = change(w, b, *values)
    return w, b


def unpacked(panels: Array, kernel: Sizes, groups: int, outputs: int) -> Array:
    """Return the weight `(O, C / groups, *kernel)` that `packed` has packed."""
    count = 1 if _is_depthwise((outputs, panels.shape[2]), groups) else groups
    w = panels.transpose((0, 3, 2, 1)).reshape((count, -1, panels.shape[2], *kernel))
    return w[:, : outputs // count].reshape((outputs, panels.shape[2], *kernel))


def with_norm(
    w: Array, b: Array | None, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float
) -> tuple[Array, Array]:
    """Return weight and bias of a convolution, or a product, that is followed by a batch norm with given statistics."""
    scale = 1 / np.sqrt(variance.astype(np.float64) + eps)
    if weight is not None:
        scale = scale * weight
    shift = (0 if b is None else b.astype(np.float64)) - mean
    shift = shift * scale if bias is None else shift * scale + bias
    return _scaled_rows(w, scale), shift.astype(w.dtype)


def with_scale(w: Array, b: Array | None, scale: Array) -> tuple[Array, Array]:
    """Return weight and bias of a convolution, or a product, whose outputs are multiplied by a factor each.

    Args:
        w, b: weight and bias.
        scale: the factors, maybe with dimensions of size 1; or one for all.
    """
    scale = np.broadcast_to(scale.reshape(-1).astype(np.float64), w.shape[:1])
    shift = np.zeros(w.shape[:1]) if b is None else b * scale
    return _scaled_rows(w, scale), shift.astype(w.dtype)


def with_shift(w: Array, b: Array | None, shift: Array) -> tuple[Array, Array]:
    """Return weight and bias of a convolution, or a product, to whose outputs `shift` is added, one per output."""
    shift = np.broadcast_to(shift.reshape(-1), w.shape[:1])
    return w, shift.copy() if b is None else b + shift


def _scaled_rows(w: Array, scale: Array) -> Array:
    return (w * scale.reshape((-1, *(1,) * (w.ndim - 1)))).astype(w.dtype)


# Layouts --------------------------------------------------------------------------------------------


def in_order(x: Array, dims: Sizes, order: Sizes) -> Array:
    """Return `x.transpose(dims)` as a copy whose dimensions lie in memory in an order."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return np.ascontiguousarray(x.transpose(dims).transpose(order)).transpose(back)


# Convolutions ---------------------------------------------------------------------------------------


def overwrites(place: int | None) -> Callable[[F], F]:
    """Declare a kernel that has an argument `out`, which may be its argument number `place`, and no other one."""

    def declare(function: F) -> F:
        function.overwrites = place  # type: ignore[attr-defined]
        return function

    return declare


@twin
@overwrites(3)
def convolved(
    x: Array, weight: Array, bias: Array, residual: Array | None, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int, outputs: int, activation: str = "none", low: float = -math.inf,
    high: float = math.inf, out: Array | None = None,
) -> Array:  # fmt: skip
    """Return the convolution of images with channels last: activation(x * weight + bias + residual).

    Args:
        x: `(N, H, W, C)`; the result is `(N, rows, columns, outputs)`.
        weight, bias: as `packed` and `padded_bias` return them.
        residual: an array of the result's shape.
        kernel, stride, padding, dilation: per spatial dimension.
        groups: how many groups of channels there are.
        activation: "none", "clamp" to [low, high], or "relu", "silu", "hardswish", "hardsigmoid", "sigmoid", "gelu" or
            "gelu_tanh".
        out: takes the result. It may be `residual`.
    """
    w = unpacked(weight, kernel, groups, outputs)
    rows, columns = conv_size(x.shape[1:3], kernel, stride, padding, dilation)
    spread = ((0, 0), *[(p, p) for p in padding], (0, 0))
    images = np.pad(x, spread) if any(padding) else x
    sums = np.empty((x.shape[0], rows, columns, outputs), x.dtype)
    sums[...] = bias[:outputs]
    per_group, channels = outputs // groups, x.shape[3] // groups
    for y, z in itertools.product(range(kernel[0]), range(kernel[1])):
        at = [slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in
              zip((y, z), dilation, (rows, columns), stride, strict=True)]  # fmt: skip
        part = images[:, at[0], at[1]]
        if channels == per_group == 1:
            sums += part * w[:, 0, y, z]
        elif groups == 1:
            sums += np.matmul(part, w[:, :, y, z].T)
        else:
            of_groups = part.reshape((*part.shape[:3], groups, 1, channels))
            factors = w[:, :, y, z].reshape((groups, per_group, channels)).swapaxes(1, 2)
            sums += np.matmul(of_groups, factors).reshape(sums.shape)
    return _finished(sums, residual, activation, low, high, out)


def whole(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an argument of `convolved_twice` for the arguments of `convolved`, which may end before the activation."""
    return (*args[1:], *("none", 0.0, 0.0)[len(args) - 10 :])


@twin
@overwrites(None)
def convolved_twice(x: Array, first: tuple[Any, ...], second: tuple[Any, ...], out: Array | None = None) -> Array:
    """Return a convolution of a convolution of images; each is all the arguments of `convolved` between `x` and `out`.

    Where the second one is depthwise, what is between the two is never written as a whole.
    """
    return convolved(*(convolved(x, *first), *second, out))


# Products -------------------------------------------------------------------------------------------


@overwrites(None)
def projected(
    x: Array, weight: Array, bias: Any, residual: Array | None, activation: str = "none",
    low: float = -math.inf, high: float = math.inf, out: Array | None = None,
) -> Array:  # fmt: skip
    """Return `finished` of rows that have any number of leading dimensions.

    Weight and bias may be as `packed` and `padded_bias` return them.
    """
    is_packed = weight.ndim == 4
    outputs = len(bias) - PANEL if is_packed else len(weight)
    shape, one = (*x.shape[:-1], outputs), (1, 1) if is_packed else ()
    flat = [None if each is None else each.reshape((-1, *one, outputs)) for each in (residual, out)]
    x = x.reshape((-1, *one, x.shape[-1]))
    if is_packed:
        settings = one, one, (0, 0), one, 1, outputs, activation, low, high
        return convolved(x, weight, bias, flat[0], *settings, flat[1]).reshape(shape)
    return finished(x, weight, bias, flat[0], activation, low, high, flat[1]).reshape(shape)


@twin
def finished(
    x: Array, weight: Array, bias: Array | None, residual: Array | None, activation: str = "none",
    low: float = -math.inf, high: float = math.inf, out: Array | None = None,
) -> Array:  # fmt: skip
    """Return the product of rows and the transposed weight, with an epilogue as in `convolved`."""
    return _finished(linear(x, weight, bias), residual, activation, low, high, out)


def _finished(
    sums: Array, residual: Array | None, activation: str, low: float, high: float, out: Array | None
) -> Array:  # fmt: skip
    if residual is not None:
        sums += residual
    if activation == "clamp":
        sums = hardtanh(sums, low, high)
    elif activation == "relu":
        sums = relu(sums)
    elif activation in ("gelu", "gelu_tanh"):
        sums = gelu(sums, "tanh" if activation == "gelu_tanh" else "none")
    elif activation != "none":
        sums = {each.__name__: each for each in (silu, hardswish, hardsigmoid, sigmoid)}[activation](sums)
    if out is None:
        return sums
    out[...] = sums
    return out


# Means, scales and maxima -------------------------------------------------------------------------


@twin
def means(x: Array) -> Array:
    """Return the mean of each channel of images `(N, H, W, C)`, as `(N, 1, 1, C)`."""
    return np.add.reduce(np.add.reduce(x, 2, keepdims=True), 1, keepdims=True) / x.dtype.type(x.shape[1] * x.shape[2])


@twin
@overwrites(0)
def scaled(x: Array, factors: Array, out: Array | None = None) -> Array:
    """Return images `(N, H, W, C)` times one factor per sample and channel, `(N, 1, 1, C)`."""
    return np.multiply(x, factors, out)


@twin
def maxima_of(x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, counts: Sizes) -> Array:
    """Return the maximum of each window of images `(N, H, W, C)`, as `(N, *counts, C)`."""
    for axis, (k, s, p, d, count) in enumerate(zip(kernel, stride, padding, dilation, counts, strict=True), 1):
        past = max((count - 1) * s + (k - 1) * d + 1 - p - x.shape[axis], 0)  # (with `ceil_mode`)
        spread = [(0, 0)] * 4
        spread[axis] = (p, past)
        lines = np.pad(x, spread, constant_values=-math.inf).swapaxes(0, axis)
        taps = [lines[i * d : i * d + (count - 1) * s + 1 : s] for i in range(k)]
        x = functools.reduce(np.maximum, taps).swapaxes(0, axis)
    return np.ascontiguousarray(x)
