"""`ChannelShuffle`."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional
from tinytorch.nn.modules._family import ReprLayer

__all__ = ["ChannelShuffle"]


class ChannelShuffle(ReprLayer):
    """Interleaves the channels of `groups` groups.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    _repr_attributes = "groups"

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels in the new order; see `nn.functional.channel_shuffle`."""
        return functional.channel_shuffle(input, self.groups)
