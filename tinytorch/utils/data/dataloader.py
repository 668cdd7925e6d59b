"""PyTorch's name, `torch.utils.data.dataloader`, for `tinytorch.data.dataloader`."""

from typing import ClassVar

from tinytorch.data import dataloader as _dataloader
from tinytorch.data.dataloader import DataLoader, default_collate, default_convert, get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

# Packages over PyTorch ask for these, as classes of what `iter(loader)` returns.
_BaseDataLoaderIter = _dataloader._Iterator
_SingleProcessDataLoaderIter = _dataloader._InProcess
_MultiProcessingDataLoaderIter = _dataloader._InWorkers
_InfiniteConstantSampler = _dataloader._InfiniteConstantSampler  # the sampler of a stream


class _DatasetKind:
    """What `DataLoader._dataset_kind` may be."""

    Map: ClassVar[int] = 0
    Iterable: ClassVar[int] = 1
