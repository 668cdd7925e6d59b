"""`torch.ao.nn`: layers of compressed models."""

from ...ao.nn import quantized

__all__ = ["quantized"]
