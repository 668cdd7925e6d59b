"""`torch.distributed.checkpoint`: checkpoints that all processes write and read together, in PyTorch's format.

A checkpoint is a folder: each process writes its part of the entries to a file `__<rank>_<n>.distcp`, a sequence of
`torch.save` archives, and `.metadata` has the location of each entry. That file is written last, when all parts are on
disk: without it the checkpoint does not exist. Any number of processes can read it.

`metadata` defines the content of `.metadata`; `planners` assigns entries to processes, `filesystem` writes and reads
them, `state_dict_saver` and `state_dict_loader` run these steps on all ranks (`utils`).
`state_dict` gives the states of models and optimizers under portable names.
"""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, StorageReader, StorageWriter
from tinytorch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from tinytorch.distributed.checkpoint.planners import DefaultLoadPlanner, DefaultSavePlanner, LoadPlanner, SavePlanner
from tinytorch.distributed.checkpoint.state_dict_loader import load, load_state_dict
from tinytorch.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from tinytorch.distributed.checkpoint.utils import CheckpointException

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "LoadPlanner", "Metadata", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    try:
        if name in ("LoadPlan", "ReadItem", "SavePlan", "WriteItem"):
            return getattr(importlib.import_module(f"{__name__}.planner"), name)
        return importlib.import_module(f"{__name__}.{name}")  # PyTorch has more modules: `compat/names.txt`
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
