"""PyTorch's `torch.utils`: `data`, `checkpoint`, `dlpack`, `hooks`; `benchmark` is imported by its name."""

from tinytorch.utils import _pytree as _pytree
from tinytorch.utils import checkpoint, data, dlpack, hooks
from tinytorch.utils._swap import swap_tensors

__all__ = ["checkpoint", "data", "dlpack", "hooks", "swap_tensors"]
