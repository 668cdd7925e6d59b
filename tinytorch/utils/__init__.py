"""PyTorch's `torch.utils`: here `data`, `checkpoint` and `dlpack` (floor 4)."""

from tinytorch.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
