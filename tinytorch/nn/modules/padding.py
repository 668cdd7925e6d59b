"""Padding layers: a border of a constant, or made of the input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import DimensionalLayer, layer

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(DimensionalLayer):
    _mode: str  # of `nn.functional.pad`
    _redefined = ("__init__",)
    _example = """\
        >>> torch.nn.{name}(1)(torch.ones(1, 1, {3})).shape
        torch.Size([1, 1, {5}])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# A border that continues at the opposite end of the input -----------------------------------------


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        dims = self._dims
        if input.ndim not in (dims + 1, dims + 2):
            raise ValueError(f"expected {dims + 1}D or {dims + 2}D input (got {input.ndim}D input)")
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd, dims=1):
    """Pads the last dimension with elements from its opposite end.

    The padding is one int or (left, right); negative widths crop.

    Example:
        >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_CircularPadNd, dims=2):
    """Pads the last two dimensions with elements from their opposite ends.

    Args:
        padding: the widths of the border, one int or (left, right, top, bottom); negative widths crop.
    """


class CircularPad3d(_CircularPadNd, dims=3):
    """Pads the last three dimensions with elements from their opposite ends.

    Args:
        padding: the widths of the border, one int or (left, right, top, bottom, front, back); negative widths crop.
    """


# A border of one value ----------------------------------------------------------------------------


@layer()
class _ConstantPadNd(_PadNd):
    _mode = "constant"
    _example = """\
        >>> torch.nn.{name}(1, 2.5)(torch.ones(1, 1, {3})).shape
        torch.Size([1, 1, {5}])
    """

    padding: Any
    value: float

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd, dims=1):
    """Pads the last dimension with `value`; `padding` as for `CircularPad1d`.

    Example:
        >>> torch.nn.ConstantPad1d(1, 2.5)(torch.tensor([[1.0, 2.0]]))
        tensor([[2.5000, 1.0000, 2.0000, 2.5000]])
    """


class ConstantPad2d(_ConstantPadNd, dims=2):
    """Pads the last two dimensions with `value`; `padding` as for `CircularPad2d`."""


class ConstantPad3d(_ConstantPadNd, dims=3):
    """Pads the last three dimensions with `value`; `padding` as for `CircularPad3d`."""


class _ZeroPadNd(_ConstantPadNd):
    _example = _PadNd._example

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, dims=1):
    """Pads the last dimension with zeros; `padding` as for `CircularPad1d`."""


class ZeroPad2d(_ZeroPadNd, dims=2):
    """Pads the last two dimensions with zeros; `padding` as for `CircularPad2d`."""


class ZeroPad3d(_ZeroPadNd, dims=3):
    """Pads the last three dimensions with zeros; `padding` as for `CircularPad3d`."""


# A border that mirrors the input, or repeats its last element -------------------------------------


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd, dims=1):
    """Pads the last dimension with its mirror image, the end elements excluded; `padding` as for `CircularPad1d`.

    Example:
        >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[2., 1., 2., 3., 2.]])
    """


class ReflectionPad2d(_ReflectionPadNd, dims=2):
    """Pads the last two dimensions with their mirror images, see `ReflectionPad1d`; `padding` as `CircularPad2d`."""


class ReflectionPad3d(_ReflectionPadNd, dims=3):
    """Pads the last three dimensions with their mirror images, see `ReflectionPad1d`; `padding` as `CircularPad3d`."""


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd, dims=1):
    """Pads the last dimension with copies of its end elements; `padding` as for `CircularPad1d`.

    Example:
        >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_ReplicationPadNd, dims=2):
    """Pads the last two dimensions with copies of their end elements; `padding` as for `CircularPad2d`."""


class ReplicationPad3d(_ReplicationPadNd, dims=3):
    """Pads the last three dimensions with copies of their end elements; `padding` as for `CircularPad3d`."""
