"""`torch.ao`: of PyTorch's means to make models smaller, what models that could be quantised contain (floor 4)."""

from ..ao import quantization

__all__ = ["quantization"]
