"""PyTorch's `torch.utils`: here `data` (floor 4)."""

from tinytorch.utils import data

__all__ = ["data"]
