"""`torch.ao`: of PyTorch's tools for model compression, the modules that mark where a model could be quantised."""

from ..ao import quantization

__all__ = ["quantization"]
