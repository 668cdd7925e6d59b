"""`torch.utils.data.dataloader`, implemented in `tinytorch.data.dataloader`."""

from collections.abc import Callable
from typing import Any

from tinytorch.data.dataloader import (  # noqa: F401
    DataLoader,
    T_co,
    _BaseDataLoaderIter,
    _DatasetKind,
    _InfiniteConstantSampler,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]
