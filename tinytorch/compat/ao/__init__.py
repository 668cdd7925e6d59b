"""`torch.ao`: of PyTorch's means to make models smaller, what models that could be quantised contain."""

from ..ao import quantization

__all__ = ["quantization"]
