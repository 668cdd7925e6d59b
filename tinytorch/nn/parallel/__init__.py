"""PyTorch's `torch.nn.parallel`: `DataParallel`, which has one device here, and `DistributedDataParallel`."""

from typing import TYPE_CHECKING

from tinytorch.nn._distributed import lazy_names
from tinytorch.nn.modules.parallel import DataParallel

if TYPE_CHECKING:
    from tinytorch.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
__getattr__, __dir__ = lazy_names(__name__, "DistributedDataParallel", "distributed")
