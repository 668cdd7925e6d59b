"""PyTorch's `torch.nn.parallel`: `DataParallel`, which has one device here."""

from tinytorch.nn.modules.parallel import DataParallel
from tinytorch.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
