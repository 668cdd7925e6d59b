"""Maxima and averages of windows, and maxima put back: the pools of `nn.functional`, over `ops.pool`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.ops import autocast
from tinytorch.ops.nn import pool
from tinytorch.ops.nn.pool import adaptive_avg_pool1d, avg_pool1d
from tinytorch.ops.register import public

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

# Maxima of sliding windows ------------------------------------------------------------------------


@public("nn.functional.max_pool1d")
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows of the last dimension.

    NaN counts as the largest. Of equal elements the first one gets the gradient.

    Args:
        input: shape (N, C, L) or (C, L).
        kernel_size: the size of the windows, one int or one for each dimension.
        stride: how far apart they begin, by default `kernel_size`.
        padding: how far they reach beyond the ends, at most half of the window.
        dilation: the distance of two elements of a window.
        ceil_mode: have a last window also where the input fills it in part only.
        return_indices: return also where in the (flattened) plane the maxima are, for `max_unpool1d`.

    Raises:
        RuntimeError: the shape is another; there is no window, or too much padding.

    Example:
        >>> torch.nn.functional.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    return pool.max_pool("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


@public("nn.functional.max_pool1d_with_indices")
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return `max_pool1d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)[1].numel()
        2
    """
    return pool.max_pool("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, True, 1)


@public("nn.functional.max_pool2d")
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows of the last two dimensions of (N, C, H, W) or (C, H, W); see `max_pool1d`.

    Raises:
        RuntimeError: the shape is another; there is no window, or too much padding.

    Example:
        >>> torch.nn.functional.max_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    return pool.max_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


@public("nn.functional.max_pool2d_with_indices")
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return `max_pool2d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.max_pool2d_with_indices(torch.arange(16.0).view(1, 4, 4), 2)[1].numel()
        4
    """
    return pool.max_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, True, 2)


@public("nn.functional.max_pool3d")
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the maxima of windows of the last three dimensions of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`.

    Raises:
        RuntimeError: the shape is another; there is no window, or too much padding.

    Example:
        >>> torch.nn.functional.max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2)
        tensor([[[[7.]]]])
    """
    if autocast.on and not return_indices:
        (input,) = autocast.raised(input)
    return pool.max_pool("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


@public("nn.functional.max_pool3d_with_indices")
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return `max_pool3d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.max_pool3d_with_indices(torch.arange(8.0).view(1, 2, 2, 2), 2)[1].numel()
        1
    """
    return pool.max_pool("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, True, 3)


# Adaptive windows ---------------------------------------------------------------------------------


@public("nn.functional.adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of `output_size` windows that cover the last dimension.

    Args:
        input: shape (N, C, L) or (C, L).
        output_size: how many windows, one int or one for each dimension; None for as many as there are elements.
        return_indices: return also where in the (flattened) plane the maxima are.

    Raises:
        RuntimeError: the shape is another, or a dimension is empty.

    Example:
        >>> torch.nn.functional.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0]]), 2)
        tensor([[3., 3.]])
    """
    found = pool.adaptive_max_pool("adaptive_max_pool1d", input, output_size, 1)
    return found if return_indices else found[0]


@public("nn.functional.adaptive_max_pool1d_with_indices")
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool1d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.adaptive_max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0]]), 2)[1].numel()
        2
    """
    return pool.adaptive_max_pool("adaptive_max_pool1d", input, output_size, 1)


@public("nn.functional.adaptive_max_pool2d")
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool1d` over the last two dimensions, of (N, C, H, W) or (C, H, W).

    Raises:
        RuntimeError: the shape is another, or a dimension is empty.

    Example:
        >>> torch.nn.functional.adaptive_max_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    found = pool.adaptive_max_pool("adaptive_max_pool2d", input, output_size, 2)
    return found if return_indices else found[0]


@public("nn.functional.adaptive_max_pool2d_with_indices")
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool2d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.adaptive_max_pool2d_with_indices(torch.arange(16.0).view(1, 4, 4), 2)[1].numel()
        4
    """
    return pool.adaptive_max_pool("adaptive_max_pool2d", input, output_size, 2)


@public("nn.functional.adaptive_max_pool3d", autocast="float32")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool1d` over the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: the shape is another, or a dimension is empty.

    Example:
        >>> torch.nn.functional.adaptive_max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 1)
        tensor([[[[7.]]]])
    """
    found = pool.adaptive_max_pool("adaptive_max_pool3d", input, output_size, 3)
    return found if return_indices else found[0]


@public("nn.functional.adaptive_max_pool3d_with_indices", autocast="float32")
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return `adaptive_max_pool3d` and the indices, whatever `return_indices` says.

    Example:
        >>> torch.nn.functional.adaptive_max_pool3d_with_indices(torch.arange(8.0).view(1, 2, 2, 2), 1)[1].numel()
        1
    """
    return pool.adaptive_max_pool("adaptive_max_pool3d", input, output_size, 3)


@public("nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool1d` over the last two dimensions, of (N, C, H, W) or (C, H, W).

    Raises:
        RuntimeError: the shape is another, or a dimension is empty.

    Example:
        >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return pool.adaptive_avg_pool("adaptive_avg_pool2d", input, output_size, 2)


@public("nn.functional.adaptive_avg_pool3d", autocast="float32")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool1d` over the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: the shape is another, or a dimension is empty.

    Example:
        >>> torch.nn.functional.adaptive_avg_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 1)
        tensor([[[[3.5000]]]])
    """
    return pool.adaptive_avg_pool("adaptive_avg_pool3d", input, output_size, 3)


# Averages of sliding windows ----------------------------------------------------------------------


@public("nn.functional.avg_pool2d", binds=False, out="exact")
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the averages of windows of the last two dimensions.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        padding: zeros to add at both ends, at most half of `kernel_size`.
        count_include_pad: count the padding among the elements of a window.
        divisor_override: divide sums by this instead of the number of elements.
        kernel_size, stride, ceil_mode: as for `max_pool1d`.

    Raises:
        RuntimeError: the shape is another; there is no window, or too much padding.

    Example:
        >>> torch.nn.functional.avg_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return pool.avg_pool(
        "avg_pool2d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2
    )


@public("nn.functional.avg_pool3d", binds=False, out="exact", autocast="float32")
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the averages of windows of the last three dimensions of (N, C, D, H, W) or (C, D, H, W); see `avg_pool2d`.

    Raises:
        RuntimeError: the shape is another; there is no window, or too much padding.

    Example:
        >>> torch.nn.functional.avg_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2)
        tensor([[[[3.5000]]]])
    """
    return pool.avg_pool(
        "avg_pool3d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3
    )


# Norms of windows ---------------------------------------------------------------------------------


def _lp_pool(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any,
    ceil_mode: bool,
    largest: Callable[..., Any],
    average: Callable[..., Tensor],
    n: int,
) -> Tensor:
    if norm_type == math.inf:
        return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf:
        return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    out = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    several = isinstance(kernel_size, Sequence)
    count = math.prod(kernel_size) if several and len(kernel_size) == n else 0
    count = count or (kernel_size[0] if several else kernel_size) ** n
    return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)


@public("nn.functional.lp_pool1d")
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `sum(x ** norm_type) ** (1 / norm_type)` of windows of the last dimension.

    Args:
        input: shape (N, C, L) or (C, L).
        norm_type: the exponent; infinity for the largest absolute value.
        kernel_size, stride, ceil_mode: as for `max_pool1d`.

    Raises:
        RuntimeError: the shape is another, or there is no window.

    Example:
        >>> torch.nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
        tensor([[5., 1.]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool1d, avg_pool1d, 1)


@public("nn.functional.lp_pool2d")
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `lp_pool1d` over windows of the last two dimensions, of (N, C, H, W) or (C, H, W).

    Raises:
        RuntimeError: the shape is another, or there is no window.

    Example:
        >>> torch.nn.functional.lp_pool2d(torch.ones(1, 2, 2), 2, 2)
        tensor([[[2.]]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool2d, avg_pool2d, 2)


@public("nn.functional.lp_pool3d")
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `lp_pool1d` over windows of the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: the shape is another, or there is no window.

    Example:
        >>> torch.nn.functional.lp_pool3d(torch.ones(1, 2, 2, 2), 3, 2)
        tensor([[[[2.]]]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool3d, avg_pool3d, 3)


# Windows at pseudo-random places ------------------------------------------------------------------


@public("nn.functional.fractional_max_pool2d", autocast="float32")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of windows of the last two dimensions, whose places are drawn at random.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        kernel_size: the size of the windows.
        output_size: how many windows.
        output_ratio: or how many as a part of the input's length, a tuple of numbers in (0, 1).
        return_indices: return also where in the (flattened) plane the maxima are.
        _random_samples: the random numbers, shape (N, C, 2).

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: the windows are too large.

    Example:
        >>> x = torch.arange(16.0).view(1, 4, 4)
        >>> torch.nn.functional.fractional_max_pool2d(x, 2, output_size=3).shape
        torch.Size([1, 3, 3])

    Source:
        Graham, "Fractional Max-Pooling", 2014.
    """
    found = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return found if return_indices else found[0]


@public("nn.functional.fractional_max_pool2d_with_indices", autocast="float32")
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool2d` and the indices, whatever `return_indices` says.

    Example:
        >>> x = torch.zeros(1, 4, 4)
        >>> torch.nn.functional.fractional_max_pool2d_with_indices(x, 2, 3)[1].shape
        torch.Size([1, 3, 3])
    """
    return pool.fractional_max_pool(
        "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2
    )


@public("nn.functional.fractional_max_pool3d", autocast="float32")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maxima of windows of the last three dimensions, whose places are drawn at random.

    The input has the shape (N, C, D, H, W) or (C, D, H, W), the random numbers (N, C, 3); arguments as
    `fractional_max_pool2d`.

    Raises:
        ValueError: neither `output_size` nor `output_ratio` is given.
        RuntimeError: the windows are too large.

    Example:
        >>> x = torch.arange(64.0).view(1, 4, 4, 4)
        >>> torch.nn.functional.fractional_max_pool3d(x, 2, output_size=2).shape
        torch.Size([1, 2, 2, 2])

    Source:
        Graham, "Fractional Max-Pooling", 2014.
    """
    found = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return found if return_indices else found[0]


@public("nn.functional.fractional_max_pool3d_with_indices", autocast="float32")
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `fractional_max_pool3d` and the indices, whatever `return_indices` says.

    Example:
        >>> x = torch.zeros(1, 4, 4, 4)
        >>> torch.nn.functional.fractional_max_pool3d_with_indices(x, 2, 2)[1].shape
        torch.Size([1, 2, 2, 2])
    """
    return pool.fractional_max_pool(
        "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3
    )


# Maxima put back ----------------------------------------------------------------------------------


def _several(value: Any, n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,) * n


def _unpool_size(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any, n: int
) -> tuple[int, ...]:
    """Return the lengths of what was pooled: of several possible ones those asked for."""
    kernel = _several(kernel_size, n)
    strides = kernel if stride is None else _several(stride, n)
    pads = _several(padding, n)
    shape = input.shape
    usual = [(shape[d - len(kernel)] - 1) * strides[d] + kernel[d] - 2 * pads[d] for d in range(len(kernel))]
    if output_size is None:
        return tuple(usual)
    if len(output_size) == len(kernel) + 2:
        output_size = output_size[2:]
    if len(output_size) != len(kernel):
        raise ValueError(
            f"output_size should be a sequence containing {len(kernel)} or {len(kernel) + 2} elements, but it has a "
            f"length of '{len(output_size)}'"
        )
    for d, (length, step) in enumerate(zip(usual, strides, strict=True)):
        if not length - step < output_size[d] < length + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {length - step} and {length + step})'
            )
    return tuple(output_size)


@public("nn.functional.max_unpool1d", autocast="float32")
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return zeros with the maxima of `max_pool1d` at their places.

    Args:
        input: the maxima.
        indices: where in the (flattened) plane they belong.
        kernel_size, stride, padding: of the windows that they are from.
        output_size: its spatial lengths, where several would give as many windows.

    Raises:
        RuntimeError: an index is out of range; the shapes differ.
        ValueError: `output_size` does not fit.

    Example:
        >>> F = torch.nn.functional
        >>> values, indices = F.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
        >>> F.max_unpool1d(values, indices, 2)
        tensor([[0., 3., 2., 0.]])
    """
    sizes = _unpool_size(input, kernel_size, stride, padding, output_size, 1)
    return pool.max_unpool(input, indices, sizes, 1)


@public("nn.functional.max_unpool2d", autocast="float32")
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return zeros with the maxima of `max_pool2d` at their places; arguments as `max_unpool1d`.

    Raises:
        RuntimeError: an index is out of range; the shapes differ.
        ValueError: `output_size` does not fit.

    Example:
        >>> F = torch.nn.functional
        >>> values, indices = F.max_pool2d(torch.arange(4.0).view(1, 2, 2), 2, return_indices=True)
        >>> F.max_unpool2d(values, indices, 2)
        tensor([[[0., 0.],
                 [0., 3.]]])
    """
    sizes = _unpool_size(input, kernel_size, stride, padding, output_size, 2)
    return pool.max_unpool(input, indices, sizes, 2)


@public("nn.functional.max_unpool3d", autocast="float32")
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return zeros with the maxima of `max_pool3d` at their places; arguments as `max_unpool1d`.

    Raises:
        RuntimeError: an index is out of range; the shapes differ.
        ValueError: `output_size` does not fit.

    Example:
        >>> F = torch.nn.functional
        >>> values, indices = F.max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2, return_indices=True)
        >>> F.max_unpool3d(values, indices, 2)
        tensor([[[[0., 0.],
                  [0., 0.]],
        <BLANKLINE>
                 [[0., 0.],
                  [0., 7.]]]])
    """
    sizes = _unpool_size(input, kernel_size, stride, padding, output_size, 3)
    return pool.max_unpool(input, indices, sizes, 3)
