"""`make_tensor`: random inputs of any dtype."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.create import empty
from tinytorch.ops.limits import finfo, iinfo
from tinytorch.ops.random import randint

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of random numbers from [low, high).

    Args:
        *shape: the sizes, or one sequence of them.
        low: the least number; by default 0 for bool and uint8, else -9.
        high: the bound, which is not reached; by default 2 for bool, 10 for integers, 9 for floating point.
        noncontiguous: leave gaps in memory, where there are two elements or more.
        exclude_zero: put 1, or the least normal number of floating point, in the place of zeros.

    Raises:
        ValueError: `low` is not below `high`, or one is NaN or out of the range of the dtype; `requires_grad` for
            integers; both `noncontiguous` and `memory_format` are given.

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
    drawn = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    first, last = _bounds(dtype, low, high)
    if dtype.is_floating_point:
        made = empty(drawn, dtype=dtype, device=device).uniform_(first, last)
    else:
        made = randint(first, last, drawn, dtype=dtype, device=device)
    if gaps:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if dtype.is_floating_point else 1
    return made.requires_grad_() if requires_grad else made


def _bounds(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[Any, Any]:
    """Return the bounds for a dtype, checked."""
    limits: tuple[float, float]
    if dtype is dtypes.bool:
        limits, usual = (0, 2), (0, 2)
    elif dtype.is_floating_point:
        info = finfo(dtype)
        limits, usual = (info.min, info.max), (-9, 9)
    else:
        whole = iinfo(dtype)
        limits, usual = (whole.min, whole.max + (dtype is not dtypes.int64)), (-9, 10)
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.is_floating_point:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < limits[0] or low >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{limits[0]}, {limits[1]})"
        )
    low, high = (min(max(each, limits[0]), limits[1]) for each in (low, high))
    return (low, high) if dtype.is_floating_point else (math.ceil(low), math.ceil(high))
