"""Pooling: maxima and averages over windows, and unpooling of maxima.

Two families of ops are closed under differentiation. The gradient of a gather at given indices is a scatter to these
indices, and the gradient of a scatter is a gather; so a maximum, whose gradient is a scatter to its indices, has
derivatives of every order. An average is linear: its transpose spreads each element over its window.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.mode import local
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, constant
from tinytorch.kernels import dtypes, pool
from tinytorch.kernels.checks import out_of_range, refused
from tinytorch.kernels.dtypes import FLOATS, RARE
from tinytorch.kernels.meta import known
from tinytorch.kernels.resample import Map
from tinytorch.kernels.resample import averages as _average_map
from tinytorch.ops import autocast, random
from tinytorch.ops.arguments import check_tensor, op_of
from tinytorch.ops.nn.resample import op_named, resampling
from tinytorch.ops.nn.versions import rewritten, versions
from tinytorch.ops.reduce import mean
from tinytorch.ops.register import public

# (Recorded calls with batches of several sizes share the windows of an axis, and the divisors.)
_axis_windows = functools.lru_cache(256)(pool.sliding)
_adaptive_windows = functools.lru_cache(256)(pool.adaptive)
_NUMBERS = {1: "one", 2: "two", 3: "three"}

# Arguments ----------------------------------------------------------------------------------------


def _ints(name: str, argument: str, position: int, value: Any, n: int) -> tuple[int, ...]:
    """Return an argument of n dimensions: one int for all, or one for each.

    Raises:
        TypeError: the value has elements other than ints.
        RuntimeError: the number of ints is not n.
    """
    if type(value) is int:
        return (value,) * n
    if type(value) is tuple and len(value) == n and {*map(type, value)} == {int}:
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        values: Sequence[Any] = value
    else:
        values = (value,)
    try:
        if any(isinstance(each, bool) for each in values):
            raise TypeError
        found = tuple([operator.index(each) for each in values])
    except TypeError:
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be tuple of ints, not {type(value).__name__}"
        ) from None
    if len(found) == 1:
        return found * n
    if len(found) != n:
        if n == 1:
            raise RuntimeError(
                f"{name}() {argument} must be an int, list of ints or tuple of ints of size 1: the argument "
                f"'{argument}' should contain one int (got {len(found)}), but got size {len(found)}"
            )
        raise RuntimeError(f"{name}: {argument} must either be a single int, or a tuple of {_NUMBERS[n]} ints")
    return found


def _check_lines(name: str, input: Tensor) -> None:
    """Raise PyTorch's error unless `input` has the shape (N, C, L) or (C, L)."""
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


def _sizes(name: str, shape: tuple[int, ...], n: int) -> tuple[int, ...]:
    """Return the lengths of the last n dimensions of a shape of n + 1 or n + 2 dimensions."""
    if len(shape) not in (n + 1, n + 2):
        if name.startswith("adaptive"):
            colon = ":" if "max" in name else ""
            raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(shape)}")
        if len(shape) < n + 1 and name == "avg_pool2d":
            raise out_of_range(-n - 1, len(shape))
        if name != "avg_pool2d":
            if n == 1:
                _check_filled(name, shape, n)
            raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    return shape[-n:]


def _check_filled(name: str, shape: tuple[int, ...], n: int) -> None:
    """Raise PyTorch's error if a dimension other than the batch is empty."""
    batched = len(shape) == n + 2
    inner = shape[batched:]
    if 0 not in inner and len(shape) in (n + 1, n + 2):
        return
    if n == 3:
        raise RuntimeError(
            f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{list(shape)} and non-batch dimension {batched + inner.index(0)} has length zero!"
        )
    prefix = f"{name}: " if n == 1 else ""
    raise RuntimeError(
        f"{prefix}Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
        f"got:{list(shape)}"
    )


def _check_adaptive(name: str, input: Tensor, n: int) -> None:
    """Raise PyTorch's error if a dimension other than the batch (or the channels of a 2-D average) is empty."""
    shape = input._array.shape
    first = len(shape) - n if name == "adaptive_avg_pool2d" else 1
    if 0 in shape[first:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {first + shape[first:].index(0)} being empty"
        )


def _sliding(
    name: str, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any, n: int
) -> tuple[Any, ...]:
    """Check the arguments, and return them as `_windows` takes them."""
    kernel = _ints(name, "kernel_size", 2, kernel_size, n)
    omitted = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    strides = kernel if omitted else _ints(name, "stride", 3, stride, n)
    pads = _ints(name, "padding", 4, padding, n)
    dilations = _ints(name, "dilation", 5, dilation, n)
    return name, input._array.shape, kernel, strides, pads, dilations, bool(ceil_mode), n


@functools.lru_cache(256)
def _windows(
    name: str, shape: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...],
    dilations: tuple[int, ...], ceil_mode: bool, n: int,
) -> tuple[pool.Windows, ...]:  # fmt: skip
    """Return the windows of each dimension of a shape; raise PyTorch's error where there are none."""
    spatial = _sizes(name, shape, n)
    if n == 1:
        what = (("kernel_size", kernel), ("stride", strides), ("dilation", dilations))
        for argument, (value,) in what:
            if value <= 0:
                raise RuntimeError(f"max_pool1d() {argument} must be greater than zero, but got {value}")
        if pads[0] < 0:
            raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pads[0]}")
        if 2 * pads[0] > kernel[0]:
            raise RuntimeError(
                f"max_pool1d() padding should be at most half of kernel size, but got padding={pads[0]} and "
                f"kernel_size={kernel[0]}"
            )
    for width, k, d, step in zip(pads, kernel, dilations, strides, strict=True):
        if not step:
            raise RuntimeError("stride should not be zero")
        if width < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {width}")
        if width > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={width}, kernel_size={k} and "
                f"dilation={d}"
            )
    for argument, prefix, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", strides),
        ("dilation", "dilation", dilations),
    ):
        if min(values) <= 0:
            each = zip("THW"[-n:], values, strict=True)
            got = " ".join(f"{prefix}{letter}: {value}" for letter, value in each)
            raise RuntimeError(f"{argument} should be greater than zero, but got {got}")
    _check_filled(name, shape, n)
    along = spatial, kernel, strides, pads, dilations
    counts = [pool.output_length(*each, ceil_mode) for each in zip(*along, strict=True)]
    if name == "avg_pool3d" and any(k > length for k, length in zip(kernel, spatial, strict=True)):
        sizes, kernels = (
            " ".join(f"{prefix}{letter}: {v}" for letter, v in zip("THW", values, strict=True))
            for prefix, values in (("", spatial), ("k", kernel))
        )
        raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({kernels})")
    if min(counts) < 1:
        if n == 1:
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {counts[0]}")
        before, after = ("x".join(map(str, (shape[-n - 1], *each))) for each in (spatial, counts))
        raise RuntimeError(f"Given input size: ({before}). Calculated output size: ({after}). Output size is too small")
    return tuple([_axis_windows(*each) for each in zip(*along, counts, strict=True)])


def _recording(x: Tensor) -> bool:
    """Return whether a gradient or a tangent may be needed."""
    state = local.state
    return state.modes is not None or (state.grad and x.requires_grad)


# Scatter and gather -------------------------------------------------------------------------------


placed = op(
    batch="folded", g=lambda g, index, n, distinct: picked(g, index, n, distinct), index=None, name="MaxPoolBackward"
)(pool.placed)
picked = op(
    batch="folded",
    x=lambda g, index, x_shape, n, distinct: placed(g, index, tuple(x_shape[len(x_shape) - n :]), n, distinct),
    index=None,
    name="MaxPoolPick",
)(pool.picked)


def _check_windows(kind: str, g: Tensor, n: int) -> None:
    """Raise PyTorch's error if there are no windows, which only an adaptive pooling may have."""
    shape = g._array.shape
    if 0 in shape[len(shape) - n :]:
        raise RuntimeError(
            f"adaptive_{kind}_pool{n}d_backward(): Expected grad_output to have non-zero size for non-batch "
            f"dimensions, but grad_output has sizes {list(shape)} with dimension {shape.index(0, 1)} being empty"
        )


def _max_pool_x(g: Any, out1: Any, x_shape: tuple[int, ...], windows: Any) -> Any:
    n = len(windows)
    _check_windows("max", g[0], n)
    distinct = all(each.distinct for each in windows)
    return placed(g[0], out1, tuple(x_shape[len(x_shape) - n :]), n, distinct)


_max_pools, _adaptive_max_pools = (
    {n: op_named(pool.max_pool, name.format(n), x=_max_pool_x, outputs=2, nondiff=(1,), batch="folded") for n in (2, 3)}
    for name in ("MaxPool{}DWithIndices", "AdaptiveMaxPool{}D")
)
_fractional_pools = {
    n: op_named(
        pool.fractional_pool,
        f"FractionalMaxPool{n}D",
        x=lambda g, out1, x_shape, kernel: placed(
            g[0], out1, tuple(x_shape[len(x_shape) - len(kernel) :]), len(kernel), False
        ),
        samples=None,
        outputs=2,
        nondiff=(1,),
        batch="folded",
    )
    for n in (2, 3)
}


def _unpool_op(n: int) -> Any:
    return op_named(pool.max_unpool, f"MaxUnpool{n}D", x=lambda g, index: picked(g, index, n, False), index=None)


_unpools = {n: _unpool_op(n) for n in (2, 3)}
_max_values = op_of(pool.max_values, batch="folded", x=None)


def _planar(name: str, input: Tensor, kernel_size: Any, stride: Any, *arguments: Any) -> list[Any]:
    """Return lines (C, L) or (N, C, L) as planes one row high, as PyTorch pools them, and the arguments for these.

    Args:
        *arguments: padding, and perhaps dilation.
    """
    _check_lines(name, input)
    omitted = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    kernel = (1, *_ints(name, "kernel_size", 2, kernel_size, 1))
    strides = None if omitted else (1, *_ints(name, "stride", 3, stride, 1))
    pads = [(k, *_ints(name, ("padding", "dilation")[k], k + 4, value, 1)) for k, value in enumerate(arguments)]
    return [input.unsqueeze(-2), kernel, strides, *pads]


# Maxima -------------------------------------------------------------------------------------------


def _with_indices(family: dict[int, Any], autocast: dict[int, str] | None = None, more: str = "") -> list[Any]:
    """Publish the versions of a family that return the indices as well, whatever `return_indices` is."""
    made = []
    for n, function in family.items():
        parameters = list(inspect.signature(function).parameters.values())
        arguments = ["True" if each.name == "return_indices" else each.name for each in parameters]
        name = f"{function.__name__}_with_indices"
        version = rewritten(function, name, parameters, ", ".join(arguments))
        version.__annotations__["return"] = "tuple[Tensor, Tensor]"
        version.__doc__ = f"""Return `{function.__name__}` and the indices, whatever `return_indices` is.

    Example:
        >>> maxima, indices = torch.nn.functional.{name}(torch.ones(1{", 4" * n}), 2{more})
        >>> maxima.shape == indices.shape
        True
    """
        made.append(public(f"nn.functional.{name}", autocast=(autocast or {}).get(n))(version))
    return made


@versions("nn.functional.max_pool{}d", 1, 2, 3)
def max_pool(
    n: int, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maximum of each window of the last dimensions, whose number is {n}.

    NaN counts as the largest value. Of equal elements, the first one gets the gradient.

    Shape: (N, C, ...) or (C, ...). The settings are one int or one per dimension; `stride` is by default `kernel_size`,
    `padding` at most half of that. `ceil_mode` includes a last window that the input fills only partly. The indices are
    those in the flattened spatial dimensions, for `max_unpool{n}d`.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2).shape
        torch.Size([1, {2}])
    """
    name = f"max_pool{n}d"
    if n == 3 and autocast.on and not return_indices:
        (input,) = autocast.raised(input)
    if n == 1 and (return_indices or _recording(input)):
        try:
            planes, *sizes = _planar(name, input, kernel_size, stride, padding, dilation)
            found = max_pool2d(planes, sizes[0], sizes[1], sizes[2], sizes[3], ceil_mode, return_indices)
        except (RuntimeError, TypeError):
            if not return_indices:  # PyTorch's 1-D kernel has its own error messages
                _windows(*_sliding(name, input, kernel_size, stride, padding, dilation, ceil_mode, 1))
            raise
        return tuple([each.squeeze(-2) for each in found]) if return_indices else found.squeeze(-2)
    windows = _windows(*_sliding(name, input, kernel_size, stride, padding, dilation, ceil_mode, n))
    x = input._array
    if x.dtype.char in RARE or (n == 1 and x.dtype.kind in "iu"):
        raise refused("max_pool1d_impl" if n == 1 else f"max_pool{n}d", input._array)
    if n == 1 or not (return_indices or _recording(input)):
        return _max_values(input, windows)
    out = _max_pools[n](input, windows)
    return out if return_indices else out[0]


max_pool1d, max_pool2d, max_pool3d = max_pool.values()


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = _with_indices(max_pool)


@versions("max_pool{}d", 1, 2, 3, autocast={3: "float32"})
def _without_indices(
    n: int, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Return `nn.functional.{name}`, always without indices.

    Example:
        >>> torch.{name}(torch.ones(1, {4}), 2).shape
        torch.Size([1, {2}])
    """
    return max_pool[n](input, kernel_size, stride, padding, dilation, ceil_mode)


_max_pool1d, _max_pool2d, _max_pool3d = _without_indices.values()


@public("max_pool1d_with_indices")
def _line_pool_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Return `nn.functional.max_pool1d` and the indices of the maxima.

    Example:
        >>> torch.max_pool1d_with_indices(torch.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        (tensor([[[3., 2.]]]), tensor([[[1, 2]]]))
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _output_size(name: str, value: Any, input: Tensor, n: int) -> tuple[int, ...]:
    """Return the output's lengths; None stands for the input's length."""
    if type(value) is int and value >= 0:
        return (value,) * n
    shape = input._array.shape
    if type(value) is tuple and len(value) == n < len(shape) and {*map(type, value)} == {int} and min(value) >= 0:
        return value
    wanted: Any = value
    if isinstance(value, Sequence) and n > 1:
        if len(shape) <= len(value):
            raise ValueError(f"Input dimension should be at least {len(value) + 1}")
        own = shape[len(shape) - len(value) :]
        wanted = [size if each is None else each for each, size in zip(value, own, strict=True)]
        if len(value) not in (1, n) or (len(value) == 1 < n and name != "adaptive_max_pool2d"):
            inner = f"{name}(): internal error: output_size.size()" if "max" in name else f"{name}: output_size"
            raise RuntimeError(f"{inner} must be {n}")
    elif isinstance(value, Sequence) and len(value) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(value)})")
    elif value is None and n > 1:
        wanted = shape[len(shape) - n :]
    sizes = _ints(name, "output_size", 2, wanted, n)
    if min(sizes) < 0:
        if "max" in name:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*shape[:-n], *sizes]}")
        shown = ", ".join(map(str, sizes))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{shown}}}"
        )
    return sizes


@versions("nn.functional.adaptive_max_pool{}d", 1, 2, 3, autocast={3: "float32"})
def adaptive_max_pool(n: int, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maximum of each of `output_size` windows that cover the last dimensions, whose number is {n}.

    Shape: (N, C, ...) or (C, ...); `output_size` is one int or one per dimension, None for the length of the input.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2).shape
        torch.Size([1, {2}])
    """
    name = f"adaptive_max_pool{n}d"
    check_tensor(input, name)
    if n == 1:
        _check_lines(name, input)
        sizes = (1, *_output_size(name, output_size, input, 1))
        _check_adaptive(name, input, 1)
        found = adaptive_max_pool2d(input.unsqueeze(-2), sizes, True)
        out, index = found[0].squeeze(-2), found[1].squeeze(-2)
        return (out, index) if return_indices else out
    sizes = _output_size(name, output_size, input, n)
    spatial = _sizes(name, input._array.shape, n)
    _check_adaptive(name, input, n)
    if input._array.dtype.kind not in FLOATS:
        raise refused("adaptive_max_pool3d_cpu" if n == 3 else "adaptive_max_pool2d", input._array)
    windows = tuple([_adaptive_windows(length, count) for length, count in zip(spatial, sizes, strict=True)])
    out, index = _adaptive_max_pools[n](input, windows, n == 2)
    return (out, index) if return_indices else out


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = adaptive_max_pool.values()


(
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices,
) = _with_indices(adaptive_max_pool, {3: "float32"})  # fmt: skip


@public("adaptive_max_pool1d")
def _adaptive_line_pool(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """Return `nn.functional.adaptive_max_pool1d` and the indices of the maxima.

    Example:
        >>> torch.adaptive_max_pool1d(torch.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        (tensor([[[3., 2.]]]), tensor([[[1, 2]]]))
    """
    return adaptive_max_pool1d(input, output_size, True)


@versions("nn.functional.fractional_max_pool{}d", 2, 3, autocast="float32")
def fractional_max_pool(
    n: int, input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """Return the maxima of windows of the last {n} dimensions, at pseudorandom positions.

    Shape: (N, C, ...) or (C, ...). `output_ratio` is that of the output's size to the input's; `_random_samples`, (N,
    C, {n}), in [0, 1), determine the positions.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2, output_size=2).shape
        torch.Size([1, {2}])

    Source: Graham, "Fractional max-pooling", 2014.
    """
    name, samples = f"fractional_max_pool{n}d", _random_samples
    shape = input._array.shape
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = [output_ratio] * n if isinstance(output_ratio, float) else output_ratio
        if len(ratios) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        if len(ratios) < n:
            raise IndexError("tuple index out of range")
        output_size = [int(length * ratio) for length, ratio in zip(shape[-n:], ratios, strict=True)]
    if len(shape) < n + 1:
        raise out_of_range(-n - 1, len(shape))
    batch = 1 if len(shape) == n + 1 else shape[0]
    if samples is None:
        if input._array.dtype.kind not in FLOATS:
            raise refused("check_uniform_bounds", input._array)
        samples = random.rand(batch, shape[-n - 1], n, dtype=input.dtype, device=input.device)
    kernel = _ints(name, "kernel_size", 2, kernel_size, n)
    sizes = _ints(name, "output_size", 3, output_size, n)
    if len(shape) not in (n + 1, n + 2) or 0 in shape[-n - 1 :]:
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor with non-empty non-batch dimensions, "
            f"but got: {list(shape)}"
        )
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != shape[-n - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}.")
    names = ("time", "height", "width")[-n:]
    for what, k, length, count in zip(names, kernel, shape[-n:], sizes, strict=True):
        if count + k - (n == 2) > length or k < 1:  # PyTorch wants one element more in three dimensions
            place = name if n == 2 else f"{name}_out"
            raise RuntimeError(f"{place}(): pool {what} {k} too large relative to input {what} {length}")
    samples = samples[0] if len(shape) == n + 1 else samples[:batch]
    out, index = _fractional_pools[n](input, samples, kernel, sizes)
    return (out, index) if return_indices else out


fractional_max_pool2d, fractional_max_pool3d = fractional_max_pool.values()


fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = _with_indices(
    fractional_max_pool, {2: "float32", 3: "float32"}, ", output_size=2"
)


def _unpool_size(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any, n: int
) -> tuple[int, ...]:
    """Return the size of the result of `max_unpool`, the checked `output_size` if it is given."""
    kernel, pads = _as_tuple(kernel_size, n), _as_tuple(padding, n)
    strides = kernel if stride is None else _as_tuple(stride, n)
    shape = input.shape
    default = [(shape[d - len(kernel)] - 1) * strides[d] + kernel[d] - 2 * pads[d] for d in range(len(kernel))]
    if output_size is None:
        return tuple(default)
    if len(output_size) == len(kernel) + 2:
        output_size = output_size[2:]
    if len(output_size) != len(kernel):
        raise ValueError(
            f"output_size should be a sequence containing {len(kernel)} or {len(kernel) + 2} elements, but it has a "
            f"length of '{len(output_size)}'"
        )
    for d, (length, step) in enumerate(zip(default, strides, strict=True)):
        if not length - step < output_size[d] < length + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {length - step} and {length + step})'
            )
    return tuple(output_size)


def _as_tuple(value: Any, n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,) * n


@versions("nn.functional.max_unpool{}d", 1, 2, 3, autocast="float32")
def _unpooled(
    n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Return zeros with the maxima at their places: the inverse of `max_pool{n}d`, but for the other elements.

    The arguments are what `max_pool{n}d` returned with indices, and its settings; several inputs of the pooling give an
    output of one shape, of which `output_size` selects one.

    Example:
        >>> maxima, indices = torch.nn.functional.max_pool{n}d(torch.ones(1, {4}), 2, return_indices=True)
        >>> torch.nn.functional.{name}(maxima, indices, 2).shape
        torch.Size([1, {4}])
    """
    sizes = _unpool_size(input, kernel_size, stride, padding, output_size, n)
    if n == 3:
        steps = list(_as_tuple(kernel_size if stride is None else stride, 3))
        if min(steps) < 1:
            raise RuntimeError(f"strides should be greater than zero, but got stride: {steps}")
    name = "max_unpooling3d" if n == 3 else "max_unpooling2d"
    shape = input._array.shape
    low = max(n, 2)
    if indices.dtype is not dtypes.int64:
        given = "" if n == 3 else f" but got: {indices.dtype.tensor_name}"
        raise RuntimeError(f"elements in indices should be type int64{given}")
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to {name} should be a {low + 1}d or {low + 2}d Tensor, but got a tensor with "
            f"{len(shape) + low - n} dimensions."
        )
    if shape != indices._array.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(indices._array.shape)}"
        )
    if 0 in shape[-n - 1 :]:
        full = (*shape, 1) if n == 1 else shape
        dim = next(k for k in range(len(shape) - n - 1, len(shape)) if not shape[k])
        raise RuntimeError(
            f"{name}_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got "
            f"{list(full)} with dimension {dim} being empty."
        )
    if input._array.dtype.kind not in FLOATS:
        raise refused("max_unpool3d" if n == 3 else "max_unpool2d", input._array)
    index = indices._array
    size = math.prod(sizes)
    if known(lambda at: ((at < 0) | (at >= size)).any(), index):
        wrong = (index < 0) | (index >= size)
        volume = "x".join(map(str, sizes if n > 1 else (*sizes, 1)))
        raise RuntimeError(f"Found an invalid max index: {index[wrong].flat[0]} (output volumes are of size {volume})")
    if n == 1:
        return _unpools[2](input.unsqueeze(-1), indices.unsqueeze(-1), (*sizes, 1)).squeeze(-1)
    return _unpools[n](input, indices, sizes)


max_unpool1d, max_unpool2d, max_unpool3d = _unpooled.values()


# Averages -----------------------------------------------------------------------------------------


def _avg_pool_x(g: Any, x_shape: tuple[int, ...], windows: Any, divisor: Any) -> Any:
    _check_windows("avg", g, len(windows))
    return _spread(g, windows, tuple(x_shape[len(x_shape) - len(windows) :]), divisor)


_averages = {n: op_named(pool.avg_pool, f"AvgPool{n}D", x=_avg_pool_x) for n in (2, 3)}
_adaptive_averages = {n: op_named(pool.avg_pool, f"AdaptiveAvgPool{n}D", x=_avg_pool_x) for n in (2, 3)}
_spread = op_of(
    pool.spread_averages,
    batch="folded",
    g=lambda g, windows, divisor: _averages[2](g, windows, divisor),
    name="AvgPoolBackward",
)
_uneven_averages = {n: resampling(f"AdaptiveAvgPool{n}D", OWN) for n in (2, 3)}


@functools.lru_cache(256)
def _divided(
    name: str, shape: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...],
    dilations: tuple[int, ...], ceil_mode: bool, n: int, include_pad: bool, kind: Any,
) -> tuple[tuple[pool.Windows, ...], Any]:  # fmt: skip
    """Return the windows and their numbers of elements: one number if it is the same for all windows, else an array."""
    windows = _windows(name, shape, kernel, strides, pads, dilations, ceil_mode, n)
    counts = tuple([each.many for each in windows])
    return windows, _divisor(shape[-n:], kernel, strides, pads, counts, include_pad, kind)


@functools.lru_cache(256)
def _divisor(
    spatial: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...],
    counts: tuple[int, ...], include_pad: bool, kind: Any,
) -> Any:  # fmt: skip
    product: Any = np.ones((), np.int64)
    for length, k, s, p, count in zip(spatial, kernel, strides, pads, counts, strict=True):
        begin = np.arange(count) * s - p
        end = np.minimum(begin + k, length + p)
        if not include_pad:
            begin, end = np.maximum(begin, 0), np.minimum(end, length)
        product = product[..., None] * (end - begin)
    if (product == product.flat[0]).all():
        return int(product.flat[0])
    return product.astype(np.int64 if kind.kind in "iu" else kind if kind.itemsize > 2 else np.float32)


@versions("nn.functional.avg_pool{}d", 2, 3, binds=False, out="exact", autocast={3: "float32"})
def avg_pool(
    n: int, input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the average of each window of the last {n} dimensions.

    Shape: (N, C, ...) or (C, ...). The padding counts among the elements of a window if `count_include_pad`;
    `divisor_override` is a divisor of the sums instead of their number. Other arguments as for `max_pool{n}d`.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2).shape
        torch.Size([1, {2}])
    """
    name = f"avg_pool{n}d"
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    sliding, kind = _sliding(name, input, kernel_size, stride, padding, 1, ceil_mode, n), input._array.dtype
    windows, divisor = _divided(*sliding, bool(count_include_pad), kind)
    if (kind.kind not in FLOATS or (n == 3 and kind.itemsize == 2)) and kind != np.int64:
        raise refused("avg_pool3d_out_frame" if n == 3 else "avg_pool2d", input._array)
    if divisor_override is not None:
        divisor = divisor_override
    elif isinstance(divisor, np.ndarray):
        constant(divisor)
    return _averages[n](input, windows, divisor, n == 2)


avg_pool2d, avg_pool3d = avg_pool.values()


@public(binds=False, also="nn.functional.avg_pool1d")
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Return the averages of windows along the last dimension.

    Shape: (N, C, L) or (C, L); arguments as for `avg_pool2d`.

    Example:
        >>> torch.avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    check_tensor(input, "avg_pool1d")
    x = input._array
    if x.dtype.kind == "f" and x.flags.c_contiguous and not _recording(input):
        try:
            sliding = _sliding("avg_pool1d", input, kernel_size, stride, padding, 1, ceil_mode, 1)
            windows, divisor = _divided(*sliding, bool(count_include_pad), x.dtype)
            return _averages[2](input, windows, divisor, False)
        except (RuntimeError, TypeError):
            pass  # (the planes below know PyTorch's errors)
    planes, kernel, strides, pads = _planar("avg_pool1d", input, kernel_size, stride, padding)
    return avg_pool2d(planes, kernel, strides, pads, ceil_mode, count_include_pad).squeeze(-2)


@versions("nn.functional.adaptive_avg_pool{}d", 2, 3, autocast={3: "float32"})
def adaptive_avg_pool(n: int, input: Tensor, output_size: Any) -> Tensor:
    """Return the average of each of `output_size` windows that cover the last {n} dimensions.

    Shape: (N, C, ...) or (C, ...); `output_size` as for `adaptive_max_pool{n}d`.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2).shape
        torch.Size([1, {2}])
    """
    name = f"adaptive_avg_pool{n}d"
    sizes = _output_size(name, output_size, input, n)
    floating = input._array.dtype.kind in FLOATS
    if set(sizes) == {1}:
        if not (floating or input.dtype.is_complex):
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {input.dtype.tensor_name}"
            )
        return mean(input, tuple(range(-n, 0)), True)
    spatial = _sizes(name, input._array.shape, n)
    _check_adaptive(name, input, n)
    if not floating:
        raise refused("adaptive_avg_pool3d_cpu" if n == 3 else "adaptive_avg_pool2d", input._array)
    if 0 in sizes or not any([length % count for length, count in zip(spatial, sizes, strict=True)]):
        windows = tuple([_adaptive_windows(length, count) for length, count in zip(spatial, sizes, strict=True)])
        divisor = math.prod(spatial) // max(math.prod(sizes), 1)
        return _adaptive_averages[n](input, windows, divisor, n == 2)
    maps: tuple[Map | None, ...] = tuple(
        [None if length == count else _average_map(length, count) for length, count in zip(spatial, sizes, strict=True)]
    )
    return _uneven_averages[n](input, maps, n == 2)


adaptive_avg_pool2d, adaptive_avg_pool3d = adaptive_avg_pool.values()


@public(binds=False, also="nn.functional.adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the average of each of `output_size` windows that cover the last dimension, of (N, C, L) or (C, L).

    Example:
        >>> torch.adaptive_avg_pool1d(torch.tensor([[1.0, 3.0, 2.0]]), 2)
        tensor([[2.0000, 2.5000]])
    """
    _check_lines("adaptive_avg_pool1d", input)
    sizes = (1, *_output_size("adaptive_avg_pool1d", output_size, input, 1))
    return adaptive_avg_pool2d(input.unsqueeze(-2), sizes).squeeze(-2)


# Norms of windows ---------------------------------------------------------------------------------


@versions("nn.functional.lp_pool{}d", 1, 2, 3)
def _lp_pools(
    n: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the `norm_type`-norm of each window of the last {n} dimensions: the root of the sum of the powers.

    Shape: (N, C, ...) or (C, ...). For inf it is the maximum of the absolute values; other arguments as for
    `max_pool{n}d`.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, {4}), 2, 2).shape
        torch.Size([1, {2}])
    """
    if norm_type == math.inf and isinstance(norm_type, float):
        return max_pool[n](input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf and isinstance(norm_type, float):
        return -max_pool[n](-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    average: Any = avg_pool1d if n == 1 else avg_pool[n]
    out = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    if isinstance(kernel_size, Sequence):
        count = math.prod(kernel_size) if len(kernel_size) == n else kernel_size[0] ** n
    else:
        count = kernel_size**n
    return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pools.values()
