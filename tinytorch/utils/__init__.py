"""PyTorch's `torch.utils`: here `data` and `checkpoint` (floor 4)."""

from tinytorch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
