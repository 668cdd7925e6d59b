"""`torch.ao.quantization`: `quantize_dynamic`; and modules without effect that mark where models could be quantised."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module
from tinytorch.nn.quantization.quantize import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    get_default_dynamic_quant_module_mappings,
    per_channel_dynamic_qconfig,
    quantize_dynamic,
)

from ...named import names_of

__all__ = [
    "DeQuantStub", "QuantStub", "default_dynamic_qconfig", "float16_dynamic_qconfig",
    "get_default_dynamic_quant_module_mappings", "per_channel_dynamic_qconfig", "quantize_dynamic",
]  # fmt: skip


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
