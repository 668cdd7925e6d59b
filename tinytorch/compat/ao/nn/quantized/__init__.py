"""`torch.ao.nn.quantized`: layers with weights of few bits."""

from ....ao.nn.quantized import dynamic

__all__ = ["dynamic"]
