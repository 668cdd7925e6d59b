"""`torch.distributed.tensor`: tensors in parts on several processes: there are none, programs ask."""

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributed import init_process_group

__all__ = ["DTensor"]


class DTensor(Tensor):
    """A tensor in parts on several processes: there are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError: processes do not exchange tensors."""
        init_process_group()
