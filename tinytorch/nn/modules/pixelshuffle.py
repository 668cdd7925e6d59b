"""Layers that rearrange channels into pixels, and back."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor as Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import ReprLayer, layer

__all__ = ["PixelShuffle", "PixelUnshuffle"]


@layer(F.pixel_shuffle, shown="upscale_factor")
class PixelShuffle(ReprLayer):
    """Rearranges (*, c * r * r, h, w) to (*, c, h * r, w * r), where r is `upscale_factor`.

    Example:
        >>> torch.nn.PixelShuffle(3)(torch.ones(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    upscale_factor: int


@layer(F.pixel_unshuffle, shown="downscale_factor")
class PixelUnshuffle(ReprLayer):
    """Rearranges (*, c, h * r, w * r) to (*, c * r * r, h, w), where r is `downscale_factor`.

    Example:
        >>> torch.nn.PixelUnshuffle(3)(torch.ones(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    downscale_factor: int
