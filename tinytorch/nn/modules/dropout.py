"""Dropout layers: in training they zero elements, or whole channels, at random."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import Shown

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Shown):
    _shown = "p inplace"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace


class Dropout(_DropoutNd):
    """Zeroes elements with probability `p` and divides the others by 1 - p; idle after `eval()`, in place if `inplace`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> layer = torch.nn.Dropout(0.5)
        >>> sorted(set(layer(torch.ones(100)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()(torch.ones(3))
        tensor([1., 1., 1.])

    Source:
        Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors", 2012.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with elements dropped."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """`Dropout` of whole channels, with probability `p`, in an input `(N, C, L)`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout1d(1.0)(torch.ones(1, 4, 2)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with channels dropped."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """`Dropout` of whole channels, with probability `p`, in an input `(N, C, H, W)`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout2d(1.0)(torch.ones(1, 4, 2, 2)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with channels dropped."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """`Dropout` of whole channels, with probability `p`, in an input `(N, C, D, H, W)`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> torch.nn.Dropout3d(1.0)(torch.ones(1, 4, 2, 2, 2)).sum()
        tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with channels dropped."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Sets elements to the negative limit of `SELU` and rescales, so that mean and variance stay.

    Args:
        inplace: has no meaning here, as in PyTorch.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> torch.nn.AlphaDropout(0.2).eval()(torch.ones(3))
        tensor([1., 1., 1.])

    Source:
        Klambauer et al., "Self-normalizing neural networks", 2017.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with elements dropped."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels, the second dimension, with probability `p`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> torch.nn.FeatureAlphaDropout(0.2).eval()(torch.ones(1, 3))
        tensor([[1., 1., 1.]])

    Source:
        Klambauer et al., "Self-normalizing neural networks", 2017.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with channels dropped."""
        return F.feature_alpha_dropout(input, self.p, self.training)
