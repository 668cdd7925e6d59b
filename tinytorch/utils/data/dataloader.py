"""PyTorch's name, `torch.utils.data.dataloader`, for `tinytorch.data.dataloader` (floor 4)."""

from tinytorch.data.dataloader import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = [
    "DataLoader",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
