"""`torch.utils`: `checkpoint`, `data`, `dlpack`, `hooks`; other submodules, such as `benchmark`, need an import."""

from tinytorch.utils import _pytree as _pytree
from tinytorch.utils import checkpoint, data, dlpack, hooks
from tinytorch.utils._swap import swap_tensors

__all__ = ["checkpoint", "data", "dlpack", "hooks", "swap_tensors"]
