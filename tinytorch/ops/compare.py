"""Comparison and logic, on each element (floor 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.ops.arguments import refused
from tinytorch.ops.register import pointwise


def _of_bits(name: str, ufunc: Any) -> Any:
    """Return the kernel of integers and booleans, with PyTorch's error for all else."""

    def kernel(*operands: Any) -> Any:
        try:
            return ufunc(*operands)
        except TypeError:
            floating = [each for each in operands if getattr(each, "dtype", None) is not None]
            raise refused(name, floating[0]) from None

    return kernel


def _of_shifts(name: str, ufunc: Any) -> Any:
    kernel = _of_bits(name, ufunc)

    def shifted(x: Any, y: Any) -> Any:
        if getattr(x, "dtype", None) == np.bool_:
            raise refused(name, x)
        return kernel(x, y)

    return shifted


eq = pointwise(
    "eq",
    np.equal,
    x=None,
    y=None,
    doc="""Return whether `x == y`, elementwise with broadcasting.

    Example:
        >>> torch.eq(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True, False])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
ne = not_equal = pointwise(
    "ne",
    np.not_equal,
    x=None,
    y=None,
    doc="""Return whether `x != y`, elementwise.

    Example:
        >>> torch.ne(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """,
    also="not_equal",
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
lt = less = pointwise(
    "lt",
    np.less,
    x=None,
    y=None,
    doc="""Return whether `x < y`, elementwise.

    Example:
        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """,
    also="less",
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
le = less_equal = pointwise(
    "le",
    np.less_equal,
    x=None,
    y=None,
    doc="""Return whether `x <= y`, elementwise.

    Example:
        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """,
    also="less_equal",
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
gt = greater = pointwise(
    "gt",
    np.greater,
    x=None,
    y=None,
    doc="""Return whether `x > y`, elementwise.

    Example:
        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """,
    also="greater",
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
ge = greater_equal = pointwise(
    "ge",
    np.greater_equal,
    x=None,
    y=None,
    doc="""Return whether `x >= y`, elementwise.

    Example:
        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """,
    also="greater_equal",
    method=True,
    in_place=True,
    out="promoted",
    operands="tensor first",
)
logical_and = pointwise(
    "logical_and",
    np.logical_and,
    x=None,
    y=None,
    doc="""Return whether both are not zero.

    Example:
        >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([False, False,  True])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="tensors",
)
logical_or = pointwise(
    "logical_or",
    np.logical_or,
    x=None,
    y=None,
    doc="""Return whether either is not zero.

    Example:
        >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([0, 0, 3]))
        tensor([False,  True,  True])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="tensors",
)
logical_xor = pointwise(
    "logical_xor",
    np.logical_xor,
    x=None,
    y=None,
    doc="""Return whether exactly one is not zero.

    Example:
        >>> torch.logical_xor(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([ True,  True, False])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="tensors",
)
logical_not = pointwise(
    "logical_not",
    np.logical_not,
    x=None,
    doc="""Return whether `x` is zero.

    Example:
        >>> torch.logical_not(torch.tensor([0, 1, -2]))
        tensor([ True, False, False])
    """,
    method=True,
    in_place=True,
    out="promoted",
)
bitwise_and = pointwise(
    "bitwise_and",
    _of_bits("bitwise_and_cpu", np.bitwise_and),
    x=None,
    y=None,
    doc="""Return `x & y` of integers or booleans.

    Example:
        >>> torch.bitwise_and(torch.tensor([5, 6]), 3)
        tensor([1, 2])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="number first",
)
bitwise_or = pointwise(
    "bitwise_or",
    _of_bits("bitwise_or_cpu", np.bitwise_or),
    x=None,
    y=None,
    doc="""Return `x | y` of integers or booleans.

    Example:
        >>> torch.bitwise_or(torch.tensor([5, 6]), 3)
        tensor([7, 7])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="number first",
)
bitwise_xor = pointwise(
    "bitwise_xor",
    _of_bits("bitwise_xor_cpu", np.bitwise_xor),
    x=None,
    y=None,
    doc="""Return `x ^ y` of integers or booleans.

    Example:
        >>> torch.bitwise_xor(torch.tensor([5, 6]), 3)
        tensor([6, 5])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="number first",
)
bitwise_not = pointwise(
    "bitwise_not",
    _of_bits("bitwise_not_cpu", np.invert),
    x=None,
    doc="""Return `~x` of integers or booleans.

    Example:
        >>> torch.bitwise_not(torch.tensor([0, 5])), torch.bitwise_not(torch.tensor([True, False]))
        (tensor([-1, -6]), tensor([False,  True]))
    """,
    method=True,
    in_place=True,
    out="same",
)
bitwise_left_shift = pointwise(
    "bitwise_left_shift",
    _of_shifts("lshift_cpu", np.left_shift),
    x=None,
    y=None,
    doc="""Return `x << y` of integers.

    Example:
        >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
        tensor([ 4, 12])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="number first",
)
bitwise_right_shift = pointwise(
    "bitwise_right_shift",
    _of_shifts("rshift_cpu", np.right_shift),
    x=None,
    y=None,
    doc="""Return `x >> y` of integers; the sign is kept.

    Example:
        >>> torch.bitwise_right_shift(torch.tensor([8, -8]), 2)
        tensor([ 2, -2])
    """,
    method=True,
    in_place=True,
    out="promoted",
    operands="number first",
)
isnan = pointwise(
    "isnan",
    np.isnan,
    x=None,
    doc="""Return whether each element is NaN.

    Example:
        >>> torch.isnan(torch.tensor([1.0, torch.nan]))
        tensor([False,  True])
    """,
    method=True,
)
isinf = pointwise(
    "isinf",
    np.isinf,
    x=None,
    doc="""Return whether each element is infinite.

    Example:
        >>> torch.isinf(torch.tensor([1.0, -torch.inf]))
        tensor([False,  True])
    """,
    method=True,
)
isfinite = pointwise(
    "isfinite",
    np.isfinite,
    x=None,
    doc="""Return whether each element is neither NaN nor infinite.

    Example:
        >>> torch.isfinite(torch.tensor([1.0, torch.inf, torch.nan]))
        tensor([ True, False, False])
    """,
    method=True,
)
isposinf = pointwise(
    "isposinf",
    np.isposinf,
    x=None,
    doc="""Return whether each element is plus infinity.

    Example:
        >>> torch.isposinf(torch.tensor([torch.inf, -torch.inf]))
        tensor([ True, False])
    """,
    method=True,
    out="boolean result",
)
isneginf = pointwise(
    "isneginf",
    np.isneginf,
    x=None,
    doc="""Return whether each element is minus infinity.

    Example:
        >>> torch.isneginf(torch.tensor([torch.inf, -torch.inf]))
        tensor([False,  True])
    """,
    method=True,
    out="boolean result",
)
isreal = pointwise(
    "isreal",
    lambda a: np.ones_like(a, dtype=np.bool_),
    x=None,
    doc="""Return true: there are no complex numbers.

    Example:
        >>> torch.isreal(torch.tensor([1.0, 2.0]))
        tensor([True, True])
    """,
    method=True,
)
