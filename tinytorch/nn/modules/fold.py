"""`Unfold`, which extracts sliding blocks as columns, and `Fold`, its transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tinytorch.core.tensor import Tensor as Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import ReprLayer, layer

__all__ = ["Fold", "Unfold"]

SizeOrInt = int | Sequence[int]


@layer(F.fold, shown="output_size kernel_size dilation padding stride")
class Fold(ReprLayer):
    """Sums sliding blocks, given as columns, into images; arguments as `nn.functional.fold`.

    Shape: `(N, C * kH * kW, blocks)` -> `(N, C, H, W)`; N is optional.

    Example:
        >>> torch.nn.Fold((4, 5), (2, 2))(torch.ones(1, 12, 12)).shape
        torch.Size([1, 3, 4, 5])
    """

    __constants__: ClassVar = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    output_size: SizeOrInt
    kernel_size: SizeOrInt
    dilation: SizeOrInt = 1
    padding: SizeOrInt = 0
    stride: SizeOrInt = 1


@layer(F.unfold, shown="kernel_size dilation padding stride")
class Unfold(ReprLayer):
    """Returns the sliding blocks of images as columns; arguments as `nn.functional.unfold`.

    Shape: `(N, C, H, W)` -> `(N, C * kH * kW, blocks)`; N is optional.

    Example:
        >>> torch.nn.Unfold((2, 3))(torch.ones(2, 5, 3, 4)).shape
        torch.Size([2, 30, 4])
    """

    __constants__: ClassVar = ["kernel_size", "dilation", "padding", "stride"]

    kernel_size: SizeOrInt
    dilation: SizeOrInt = 1
    padding: SizeOrInt = 0
    stride: SizeOrInt = 1
