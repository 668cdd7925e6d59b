"""`torch.ao.nn.quantized.dynamic`: the linear layer with a weight of 8 or 16 bits."""

from tinytorch.nn.quantization.dynamic import Linear

__all__ = ["Linear"]
