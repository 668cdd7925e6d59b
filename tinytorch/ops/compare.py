"""Elementwise comparison, logic and bit operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.kernels import arithmetic
from tinytorch.kernels import complex as complexes
from tinytorch.ops.arguments import elementwise

#: Declaration arguments that several ops share.
_OF_TWO: dict[str, Any] = {"x": None, "y": None, "method": True, "in_place": True, "out": "promoted"}


@elementwise(np.equal, operands="tensor first", **_OF_TWO, complex=OWN)
def eq(x: Any, y: Any) -> Any:
    """Return whether `x == y`, elementwise with broadcasting.

    Example:
        >>> torch.eq(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True, False])
    """


@elementwise(np.not_equal, also="not_equal", operands="tensor first", **_OF_TWO, complex=OWN)
def ne(x: Any, y: Any) -> Any:
    """Return whether `x != y`, elementwise.

    Example:
        >>> torch.ne(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """


@elementwise(np.less, refuses="lt_cpu", also="less", operands="tensor first", **_OF_TWO)
def lt(x: Any, y: Any) -> Any:
    """Return whether `x < y`, elementwise.

    Example:
        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """


@elementwise(np.less_equal, refuses="le_cpu", also="less_equal", operands="tensor first", **_OF_TWO)
def le(x: Any, y: Any) -> Any:
    """Return whether `x <= y`, elementwise.

    Example:
        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """


@elementwise(np.greater, refuses="gt_cpu", also="greater", operands="tensor first", **_OF_TWO)
def gt(x: Any, y: Any) -> Any:
    """Return whether `x > y`, elementwise.

    Example:
        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """


@elementwise(np.greater_equal, refuses="ge_cpu", also="greater_equal", operands="tensor first", **_OF_TWO)
def ge(x: Any, y: Any) -> Any:
    """Return whether `x >= y`, elementwise.

    Example:
        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """


@elementwise(np.logical_and, refuses="logical_and_cpu", operands="tensors", **_OF_TWO, complex=OWN)
def logical_and(x: Any, y: Any) -> Any:
    """Return whether `x` and `y` are both nonzero.

    Example:
        >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([False, False,  True])
    """


@elementwise(np.logical_or, refuses="logical_or_cpu", operands="tensors", **_OF_TWO, complex=OWN)
def logical_or(x: Any, y: Any) -> Any:
    """Return whether `x` or `y` is nonzero.

    Example:
        >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([0, 0, 3]))
        tensor([False,  True,  True])
    """


@elementwise(np.logical_xor, refuses="logical_xor_cpu", operands="tensors", **_OF_TWO, complex=OWN)
def logical_xor(x: Any, y: Any) -> Any:
    """Return whether exactly one of `x` and `y` is nonzero.

    Example:
        >>> torch.logical_xor(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3]))
        tensor([ True,  True, False])
    """


@elementwise(np.logical_not, refuses="logical_not_cpu", x=None, method=True, in_place=True, out="promoted", complex=OWN)
def logical_not(x: Any) -> Any:
    """Return whether `x` is zero.

    Example:
        >>> torch.logical_not(torch.tensor([0, 1, -2]))
        tensor([ True, False, False])
    """


@elementwise(arithmetic.bitwise_and, operands="number first", **_OF_TWO)
def bitwise_and(x: Any, y: Any) -> Any:
    """Return `x & y` of integers or booleans.

    Example:
        >>> torch.bitwise_and(torch.tensor([5, 6]), 3)
        tensor([1, 2])
    """


@elementwise(arithmetic.bitwise_or, operands="number first", **_OF_TWO)
def bitwise_or(x: Any, y: Any) -> Any:
    """Return `x | y` of integers or booleans.

    Example:
        >>> torch.bitwise_or(torch.tensor([5, 6]), 3)
        tensor([7, 7])
    """


@elementwise(arithmetic.bitwise_xor, operands="number first", **_OF_TWO)
def bitwise_xor(x: Any, y: Any) -> Any:
    """Return `x ^ y` of integers or booleans.

    Example:
        >>> torch.bitwise_xor(torch.tensor([5, 6]), 3)
        tensor([6, 5])
    """


@elementwise(arithmetic.bitwise_not, refuses="bitwise_not_cpu", x=None, method=True, in_place=True, out="same")
def bitwise_not(x: Any) -> Any:
    """Return `~x` of integers or booleans.

    Example:
        >>> torch.bitwise_not(torch.tensor([0, 5])), torch.bitwise_not(torch.tensor([True, False]))
        (tensor([-1, -6]), tensor([False,  True]))
    """


@elementwise(arithmetic.left_shift, refuses="lshift_cpu", operands="number first", **_OF_TWO)
def bitwise_left_shift(x: Any, y: Any) -> Any:
    """Return `x << y` of integers.

    Example:
        >>> torch.bitwise_left_shift(torch.tensor([1, 3]), 2)
        tensor([ 4, 12])
    """


@elementwise(arithmetic.right_shift, refuses="rshift_cpu", operands="number first", **_OF_TWO)
def bitwise_right_shift(x: Any, y: Any) -> Any:
    """Return `x >> y` of integers: an arithmetic shift, which keeps the sign.

    Example:
        >>> torch.bitwise_right_shift(torch.tensor([8, -8]), 2)
        tensor([ 2, -2])
    """


@elementwise(np.isnan, x=None, method=True, complex=OWN)
def isnan(x: Any) -> Any:
    """Return whether each element is NaN.

    Example:
        >>> torch.isnan(torch.tensor([1.0, torch.nan]))
        tensor([False,  True])
    """


@elementwise(np.isinf, x=None, method=True, complex=OWN)
def isinf(x: Any) -> Any:
    """Return whether each element is infinite.

    Example:
        >>> torch.isinf(torch.tensor([1.0, -torch.inf]))
        tensor([False,  True])
    """


@elementwise(np.isfinite, x=None, method=True, complex=OWN)
def isfinite(x: Any) -> Any:
    """Return whether each element is neither NaN nor infinite.

    Example:
        >>> torch.isfinite(torch.tensor([1.0, torch.inf, torch.nan]))
        tensor([ True, False, False])
    """


@elementwise(np.isposinf, x=None, method=True, out="boolean result")
def isposinf(x: Any) -> Any:
    """Return whether each element is plus infinity.

    Example:
        >>> torch.isposinf(torch.tensor([torch.inf, -torch.inf]))
        tensor([ True, False])
    """


@elementwise(np.isneginf, x=None, method=True, out="boolean result")
def isneginf(x: Any) -> Any:
    """Return whether each element is minus infinity.

    Example:
        >>> torch.isneginf(torch.tensor([torch.inf, -torch.inf]))
        tensor([False,  True])
    """


@elementwise(complexes.isreal, x=None, complex=OWN, method=True)
def isreal(x: Any) -> Any:
    """Return whether the imaginary part is 0.

    Example:
        >>> torch.isreal(torch.tensor([1.0, 2.0]))
        tensor([True, True])
    """
