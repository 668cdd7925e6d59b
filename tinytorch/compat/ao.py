"""`torch.ao`: of PyTorch's tools for model compression, linear layers with weights of 8 or 16 bits.

`quantize_dynamic` makes these; modules without effect mark where models could be quantised.
"""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module

__all__ = ["nn", "quantization"]

nn: Any
quantization: Any


class QuantStub(Module):
    """Mark where values would be quantised: an identity, as in PyTorch before a model is converted.

    Example:
        >>> torch.ao.quantization.QuantStub()(torch.ones(2))
        tensor([1., 1.])
    """

    __module__ = "tinytorch.ao.quantization"

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class DeQuantStub(QuantStub):
    """Mark where values would be dequantised: an identity."""

    __module__ = "tinytorch.ao.quantization"
