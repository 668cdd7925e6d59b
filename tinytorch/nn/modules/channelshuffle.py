"""`ChannelShuffle`."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor as Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import ReprLayer, layer

__all__ = ["ChannelShuffle"]


@layer(F.channel_shuffle, shown="groups")
class ChannelShuffle(ReprLayer):
    """Interleaves the channels of `groups` groups.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    groups: int
