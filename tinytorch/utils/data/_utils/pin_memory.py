"""`torch.utils.data._utils.pin_memory`: memory that an accelerator reads, of which there is none."""

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import tree_map_only

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return data with its tensors in such memory: raises where there are any."""
    return tree_map_only(Tensor, lambda tensor: tensor.pin_memory(device), data)
