"""Padding layers: a border of a constant, or made of the input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional
from tinytorch.nn.modules.module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    _n: int
    _mode: str
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        several = isinstance(padding, Iterable)
        self.padding = tuple(padding) if several else (padding,) * (2 * self._n)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with its border; see `nn.functional.pad`."""
        return functional.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """Return the widths."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with its border; see `nn.functional.pad`."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Return the widths and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the widths."""
        return f"{self.padding}"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with its border; see `nn.functional.pad`."""
        n = self._n
        if input.ndim not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.ndim}D input)")
        return functional.pad(input, self.padding, "circular")


class _ReflectionPad(_Pad):
    _mode = "reflect"


class _ReplicationPad(_Pad):
    _mode = "replicate"


class CircularPad1d(_CircularPad):
    """Adds a border to the last dimension that goes on at the other end of the input.

    Args:
        padding: its widths, one int or (left, right); negative ones cut off.

    Example:
        >>> torch.nn.CircularPad1d(1)(torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """

    _n = 1


class CircularPad2d(_CircularPad):
    """Adds a border to the last two dimensions that goes on at the other end of the input.

    Args:
        padding: its widths, one int or (left, right, top, bottom); negative ones cut off.

    Example:
        >>> torch.nn.CircularPad2d(1)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """

    _n = 2


class CircularPad3d(_CircularPad):
    """Adds a border to the last three dimensions that goes on at the other end of the input.

    Args:
        padding: its widths, one int or (left, right, top, bottom, front, back); negative ones cut off.

    Example:
        >>> torch.nn.CircularPad3d(1)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """

    _n = 3


class ConstantPad1d(_ConstantPad):
    """Adds a border to the last dimension that holds one value; `padding` as for `CircularPad1d`.

    Args:
        value: what the border holds.

    Example:
        >>> torch.nn.ConstantPad1d(1, 2.5)(torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """

    _n = 1


class ConstantPad2d(_ConstantPad):
    """Adds a border to the last two dimensions that holds one value; `padding` as for `CircularPad2d`.

    Example:
        >>> torch.nn.ConstantPad2d(1, 2.5)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """

    _n = 2


class ConstantPad3d(_ConstantPad):
    """Adds a border to the last three dimensions that holds one value; `padding` as for `CircularPad3d`.

    Example:
        >>> torch.nn.ConstantPad3d(1, 2.5)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """

    _n = 3


class ReflectionPad1d(_ReflectionPad):
    """Adds a border to the last dimension that mirrors what is inside of the last element; see `CircularPad1d`.

    Example:
        >>> torch.nn.ReflectionPad1d(1)(torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """

    _n = 1


class ReflectionPad2d(_ReflectionPad):
    """Adds a border to the last two dimensions that mirrors what is inside of the last element; see `CircularPad2d`.

    Example:
        >>> torch.nn.ReflectionPad2d(1)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """

    _n = 2


class ReflectionPad3d(_ReflectionPad):
    """Adds a border to the last three dimensions that mirrors what is inside of the last element; see `CircularPad3d`.

    Example:
        >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """

    _n = 3


class ReplicationPad1d(_ReplicationPad):
    """Adds a border to the last dimension that repeats the last element; `padding` as for `CircularPad1d`.

    Example:
        >>> torch.nn.ReplicationPad1d(1)(torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """

    _n = 1


class ReplicationPad2d(_ReplicationPad):
    """Adds a border to the last two dimensions that repeats the last element; `padding` as for `CircularPad2d`.

    Example:
        >>> torch.nn.ReplicationPad2d(1)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """

    _n = 2


class ReplicationPad3d(_ReplicationPad):
    """Adds a border to the last three dimensions that repeats the last element; `padding` as for `CircularPad3d`.

    Example:
        >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """

    _n = 3


class ZeroPad1d(_ZeroPad):
    """Adds a border to the last dimension that holds zeros; `padding` as for `CircularPad1d`.

    Example:
        >>> torch.nn.ZeroPad1d(1)(torch.ones(1, 1, 3)).shape
        torch.Size([1, 1, 5])
    """

    _n = 1


class ZeroPad2d(_ZeroPad):
    """Adds a border to the last two dimensions that holds zeros; `padding` as for `CircularPad2d`.

    Example:
        >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 1, 3, 3)).shape
        torch.Size([1, 1, 5, 5])
    """

    _n = 2


class ZeroPad3d(_ZeroPad):
    """Adds a border to the last three dimensions that holds zeros; `padding` as for `CircularPad3d`.

    Example:
        >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 1, 3, 3, 3)).shape
        torch.Size([1, 1, 5, 5, 5])
    """

    _n = 3
