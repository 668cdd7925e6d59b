"""`make_tensor`, which creates random tensors of any dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels.limits import finfo, iinfo
from tinytorch.ops.create import empty
from tinytorch.ops.random import randint

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any, dtype: dtypes.dtype, device: Any, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of random numbers from [low, high).

    Args:
        low: the inclusive lower bound; by default 0 for bool and uint8, else -9.
        high: the exclusive upper bound; by default 2 for bool, 10 for integers, 9 for floating point.
        exclude_zero: replace zeros by 1, or by the smallest normal number of a floating-point dtype.

    Example:
        >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu", low=5, high=6)
        tensor([[5, 5, 5],
                [5, 5, 5]])
    """
    sizes: tuple[int, ...] = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    if requires_grad and not dtype.is_floating_point:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    gaps = noncontiguous and math.prod(sizes) > 1
    drawn_sizes = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    first, last = _bounds(dtype, low, high)
    if dtype.is_floating_point:
        result = empty(drawn_sizes, dtype=dtype, device=device).uniform_(first, last)
    else:
        result = randint(first, last, drawn_sizes, dtype=dtype, device=device)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if dtype.is_floating_point else 1
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[Any, Any]:
    """Return the bounds for a dtype, after validating them."""
    limits: tuple[float, float]
    if dtype is dtypes.bool:
        limits, default = (0, 2), (0, 2)
    elif dtype.is_floating_point:
        info = finfo(dtype)
        limits, default = (info.min, info.max), (-9, 9)
    else:
        int_info = iinfo(dtype)
        limits, default = (int_info.min, int_info.max + (dtype is not dtypes.int64)), (-9, 10)
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.is_floating_point:
        warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < limits[0] or low >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{limits[0]}, {limits[1]})"
        )
    low, high = (min(max(bound, limits[0]), limits[1]) for bound in (low, high))
    return (low, high) if dtype.is_floating_point else (math.ceil(low), math.ceil(high))
