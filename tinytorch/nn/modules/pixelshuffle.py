"""Layers that rearrange channels into pixels, and back."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional
from tinytorch.nn.modules._family import ReprLayer

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(ReprLayer):
    """Rearranges (*, c * r * r, h, w) to (*, c, h * r, w * r), where r is `upscale_factor`.

    Example:
        >>> torch.nn.PixelShuffle(3)(torch.ones(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    _repr_attributes = "upscale_factor"

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the pixels; see `nn.functional.pixel_shuffle`."""
        return functional.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(ReprLayer):
    """Rearranges (*, c, h * r, w * r) to (*, c * r * r, h, w), where r is `downscale_factor`.

    Example:
        >>> torch.nn.PixelUnshuffle(3)(torch.ones(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    _repr_attributes = "downscale_factor"

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels; see `nn.functional.pixel_unshuffle`."""
        return functional.pixel_unshuffle(input, self.downscale_factor)
