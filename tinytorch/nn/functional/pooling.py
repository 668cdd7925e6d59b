"""Pooling functions: the maximum, average or norm of each window, and the inverse of maximum pooling."""

from __future__ import annotations

import functools
import inspect
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


def _with_indices(function: Callable[..., Any], arguments: str, **facts: Any) -> Callable[..., tuple[Tensor, Tensor]]:
    """Declare `<function>_with_indices`; its docstring's example has a call with these arguments."""
    signature = inspect.signature(function)
    position = list(signature.parameters).index("return_indices")

    @functools.wraps(function)
    def with_indices(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if len(args) > position:
            return function(*args[:position], True, *args[position + 1 :], **kwargs)
        return function(*args, **{**kwargs, "return_indices": True})

    name = with_indices.__name__ = with_indices.__qualname__ = f"{function.__name__}_with_indices"
    with_indices.__annotations__ = {**function.__annotations__, "return": "tuple[Tensor, Tensor]"}
    with_indices.__signature__ = signature.replace(return_annotation="tuple[Tensor, Tensor]")  # type: ignore[attr-defined]
    with_indices.__doc__ = f"""Return `{function.__name__}` and the indices, whatever `return_indices` is.

    Example:
        >>> maxima, indices = torch.nn.functional.{name}({arguments})
        >>> maxima.shape == indices.shape
        True
    """
    return public(f"nn.functional.{name}", **facts)(with_indices)


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
    """Return the maximum of each window of the last dimension.

    NaN counts as the largest value. Of equal elements, the first one gets the gradient.

    Args:
        input: shape (N, C, L) or (C, L).
        kernel_size: the size of the windows, one int or one per dimension.
        stride: the step between neighbouring windows, by default `kernel_size`.
        padding: how far windows extend beyond both ends, at most half of the kernel size.
        dilation: the distance between neighbouring elements of a window.
        ceil_mode: whether to include a last window that the input fills only partly.
        return_indices: whether to return the maxima's indices in the flattened spatial dimensions, for `max_unpool1d`.

    Example:
        >>> torch.nn.functional.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    return pool.max_pool("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


max_pool1d_with_indices = _with_indices(max_pool1d, "torch.ones(1, 4), 2")


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
    """Return the maximum of each window of the last two dimensions of (N, C, H, W) or (C, H, W); see `max_pool1d`.

    Example:
        >>> torch.nn.functional.max_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    return pool.max_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


max_pool2d_with_indices = _with_indices(max_pool2d, "torch.ones(1, 4, 4), 2")


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
    """Return the maximum of each window of (D, H, W), of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`.

    Example:
        >>> torch.nn.functional.max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 2)
        tensor([[[[7.]]]])
    """
    if autocast.on and not return_indices:
        (input,) = autocast.raised(input)
    return pool.max_pool("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


max_pool3d_with_indices = _with_indices(max_pool3d, "torch.ones(1, 4, 4, 4), 2")


# Adaptive windows ---------------------------------------------------------------------------------


@public("nn.functional.adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maximum of each of `output_size` windows that cover the last dimension.

    Args:
        input: shape (N, C, L) or (C, L).
        output_size: the number of windows, one int or one per dimension; None for the length of the input.
        return_indices: whether to return the maxima's indices in the flattened spatial dimensions.

    Example:
        >>> torch.nn.functional.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0]]), 2)
        tensor([[3., 3.]])
    """
    result = pool.adaptive_max_pool("adaptive_max_pool1d", input, output_size, 1)
    return result if return_indices else result[0]


adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, "torch.ones(1, 4), 2")


@public("nn.functional.adaptive_max_pool2d")
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool1d` over the last two dimensions, of (N, C, H, W) or (C, H, W).

    Example:
        >>> torch.nn.functional.adaptive_max_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    result = pool.adaptive_max_pool("adaptive_max_pool2d", input, output_size, 2)
    return result if return_indices else result[0]


adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, "torch.ones(1, 4, 4), 2")


@public("nn.functional.adaptive_max_pool3d", autocast="float32")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return `adaptive_max_pool1d` over the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> torch.nn.functional.adaptive_max_pool3d(torch.arange(8.0).view(1, 2, 2, 2), 1)
        tensor([[[[7.]]]])
    """
    result = pool.adaptive_max_pool("adaptive_max_pool3d", input, output_size, 3)
    return result if return_indices else result[0]


adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, "torch.ones(1, 4, 4, 4), 2", autocast="float32")


@public("nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool1d` over the last two dimensions, of (N, C, H, W) or (C, H, W).

    Example:
        >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(16.0).view(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return pool.adaptive_avg_pool("adaptive_avg_pool2d", input, output_size, 2)


@public("nn.functional.adaptive_avg_pool3d", autocast="float32")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return `adaptive_avg_pool1d` over the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

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
    """Return the average of each window of the last two dimensions.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        padding: the number of zeros to add at both ends, at most half of `kernel_size`.
        count_include_pad: whether the padding counts among the elements of a window.
        divisor_override: a divisor of the sums, instead of the number of elements.
        kernel_size, stride, ceil_mode: as for `max_pool1d`.

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
    """Return the average of each window of (D, H, W), of (N, C, D, H, W) or (C, D, H, W); see `avg_pool2d`.

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
    if norm_type == math.inf and isinstance(norm_type, float):
        return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf and isinstance(norm_type, float):
        return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    out = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    if isinstance(kernel_size, Sequence):
        count = math.prod(kernel_size) if len(kernel_size) == n else kernel_size[0] ** n
    else:
        count = kernel_size**n
    return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)


@public("nn.functional.lp_pool1d")
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `sum(x ** norm_type) ** (1 / norm_type)` of each window of the last dimension.

    Args:
        input: shape (N, C, L) or (C, L).
        norm_type: the exponent; infinity for the largest absolute value.
        kernel_size, stride, ceil_mode: as for `max_pool1d`.

    Example:
        >>> torch.nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
        tensor([[5., 1.]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool1d, avg_pool1d, 1)


@public("nn.functional.lp_pool2d")
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `lp_pool1d` over windows of the last two dimensions, of (N, C, H, W) or (C, H, W).

    Example:
        >>> torch.nn.functional.lp_pool2d(torch.ones(1, 2, 2), 2, 2)
        tensor([[[2.]]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool2d, avg_pool2d, 2)


@public("nn.functional.lp_pool3d")
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return `lp_pool1d` over windows of the last three dimensions, of (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> torch.nn.functional.lp_pool3d(torch.ones(1, 2, 2, 2), 3, 2)
        tensor([[[[2.]]]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, max_pool3d, avg_pool3d, 3)


# Windows at random positions ----------------------------------------------------------------------


@public("nn.functional.fractional_max_pool2d", autocast="float32")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the maximum of each window of the last two dimensions; the positions of the windows are random.

    Args:
        input: shape (N, C, H, W) or (C, H, W).
        kernel_size: the size of the windows.
        output_size: the number of windows.
        output_ratio: or their number as a fraction of the input's length, a tuple of numbers in (0, 1).
        return_indices: whether to return the maxima's indices in the flattened spatial dimensions.
        _random_samples: the random numbers, shape (N, C, 2).

    Example:
        >>> x = torch.arange(16.0).view(1, 4, 4)
        >>> torch.nn.functional.fractional_max_pool2d(x, 2, output_size=3).shape
        torch.Size([1, 3, 3])

    Source:
        Graham, "Fractional Max-Pooling", 2014.
    """
    result = pool.fractional_max_pool(
        "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2
    )
    return result if return_indices else result[0]


fractional_max_pool2d_with_indices = _with_indices(
    fractional_max_pool2d, "torch.ones(1, 4, 4), 2, output_size=2", autocast="float32"
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
    """Return the maximum of each window of the last three dimensions; the positions of the windows are random.

    The input has the shape (N, C, D, H, W) or (C, D, H, W), the random numbers (N, C, 3); arguments as
    `fractional_max_pool2d`.

    Example:
        >>> x = torch.arange(64.0).view(1, 4, 4, 4)
        >>> torch.nn.functional.fractional_max_pool3d(x, 2, output_size=2).shape
        torch.Size([1, 2, 2, 2])

    Source:
        Graham, "Fractional Max-Pooling", 2014.
    """
    result = pool.fractional_max_pool(
        "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3
    )
    return result if return_indices else result[0]


fractional_max_pool3d_with_indices = _with_indices(
    fractional_max_pool3d, "torch.ones(1, 4, 4, 4), 2, output_size=2", autocast="float32"
)


# The inverse of maximum pooling -------------------------------------------------------------------


def _as_tuple(value: Any, n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,) * n


def _unpool_size(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any, n: int
) -> tuple[int, ...]:
    """Return the spatial lengths of the pooled tensor: `output_size`, checked, or else the smallest possible ones."""
    kernel = _as_tuple(kernel_size, n)
    strides = kernel if stride is None else _as_tuple(stride, n)
    pads = _as_tuple(padding, n)
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


@public("nn.functional.max_unpool1d", autocast="float32")
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return zeros with the maxima of `max_pool1d` at their indices.

    Args:
        input: the maxima.
        indices: their indices in the flattened spatial dimensions of the result.
        kernel_size, stride, padding: those of the pooling.
        output_size: the spatial lengths of the result; several lengths may have the same number of windows.

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
    """Return zeros with the maxima of `max_pool2d` at their indices; arguments as `max_unpool1d`.

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
    """Return zeros with the maxima of `max_pool3d` at their indices; arguments as `max_unpool1d`.

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
    steps = kernel_size if stride is None else stride
    steps = [steps] * 3 if isinstance(steps, int) else list(steps)
    if min(steps) < 1:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {steps}")
    return pool.max_unpool(input, indices, sizes, 3)
