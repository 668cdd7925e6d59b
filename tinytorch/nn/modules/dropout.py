"""Dropout layers: in training they zero elements, or whole channels, at random."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import DimensionalLayer, ReprLayer, layer

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


@layer(shown="p inplace")
class _DropoutNd(ReprLayer):
    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        if self.p < 0 or self.p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p`, and divides the others by 1 - p; see `nn.functional.dropout`.

    In evaluation it is the identity.

    Example:
        >>> layer = torch.nn.Dropout(0.5)
        >>> sorted(set(layer(torch.ones(100)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class _ChannelDropout(_DropoutNd, DimensionalLayer):
    _function = "dropout{dims}d"
    _example = """\
        >>> torch.nn.{name}(1.0)(torch.ones(1, 4, {2})).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


class Dropout1d(_ChannelDropout, dims=1):
    """`Dropout` of whole channels, of `(N, C, L)` or `(C, L)`; arguments as `Dropout`."""


class Dropout2d(_ChannelDropout, dims=2):
    """`Dropout` of whole channels, of `(N, C, H, W)`; arguments as `Dropout`."""


class Dropout3d(_ChannelDropout, dims=3):
    """`Dropout` of whole channels, of `(N, C, D, H, W)` or `(C, D, H, W)`; arguments as `Dropout`."""


class AlphaDropout(_DropoutNd):
    """Sets elements to the negative limit of `SELU` and rescales, so that mean and variance are preserved.

    Arguments as `Dropout`; `inplace` has no effect, as in PyTorch.

    Example:
        >>> torch.nn.AlphaDropout(0.2).eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels, the second dimension; arguments as `Dropout`.

    Example:
        >>> torch.nn.FeatureAlphaDropout(0.2).eval()(torch.ones(1, 3))
        tensor([[1., 1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
