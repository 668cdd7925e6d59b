"""`torch.ao.quantization`: the modules that mark where a model could be quantised, without effect."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module

from ...named import names_of

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """Mark where values would be quantised: an identity, as in PyTorch before a model is converted.

    Args:
        qconfig: kept as an attribute, without effect.

    Example:
        >>> torch.ao.quantization.QuantStub()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """Mark where values would be dequantised: an identity."""


globals().update(names_of(__name__))
