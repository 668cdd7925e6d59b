"""`torch.ao`: of PyTorch's tools for model compression, linear layers with weights of 8 or 16 bits."""

from ..ao import nn, quantization

__all__ = ["nn", "quantization"]
