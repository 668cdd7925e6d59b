"""Layers that move channels: to pixels and back, and among groups."""

from __future__ import annotations

from tinytorch._tensor import Tensor
from tinytorch.nn import functional
from tinytorch.nn.modules.module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Rearranges (*, c * r * r, h, w) to (*, c, h * r, w * r), where r is `upscale_factor`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.PixelShuffle(3)(torch.ones(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the pixels; see `nn.functional.pixel_shuffle`."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Return the factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges (*, c, h * r, w * r) to (*, c * r * r, h, w), where r is `downscale_factor`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.PixelUnshuffle(3)(torch.ones(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels; see `nn.functional.pixel_unshuffle`."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Return the factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Takes the channels of `groups` groups in turn.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels in the new order; see `nn.functional.channel_shuffle`."""
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Return the number of groups."""
        return f"groups={self.groups}"
