"""`Unfold`, which extracts sliding blocks as columns, and `Fold`, its transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import ReprLayer

__all__ = ["Fold", "Unfold"]

SizeOrInt = int | Sequence[int]


class Fold(ReprLayer):
    """Sums sliding blocks, given as columns, into images; arguments as `nn.functional.fold`.

    Shape:
        `(N, C * kH * kW, blocks)` -> `(N, C, H, W)`; N is optional.

    Example:
        >>> torch.nn.Fold((4, 5), (2, 2))(torch.ones(1, 12, 12)).shape
        torch.Size([1, 3, 4, 5])
    """

    _repr_attributes = "output_size kernel_size dilation padding stride"
    __constants__: ClassVar = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: SizeOrInt, kernel_size: SizeOrInt, dilation: SizeOrInt = 1, padding: SizeOrInt = 0,
        stride: SizeOrInt = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the images, `(N, C, H, W)`."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(ReprLayer):
    """Returns the sliding blocks of images as columns; arguments as `nn.functional.unfold`.

    Shape:
        `(N, C, H, W)` -> `(N, C * kH * kW, blocks)`; N is optional.

    Example:
        >>> torch.nn.Unfold((2, 3))(torch.ones(2, 5, 3, 4)).shape
        torch.Size([2, 30, 4])
    """

    _repr_attributes = "kernel_size dilation padding stride"
    __constants__: ClassVar = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, kernel_size: SizeOrInt, dilation: SizeOrInt = 1, padding: SizeOrInt = 0, stride: SizeOrInt = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns, `(N, C * kH * kW, blocks)`."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
