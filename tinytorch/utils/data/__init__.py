"""`torch.utils.data`, implemented in `tinytorch.data`."""

# ruff: noqa: F403, F405

import importlib
from typing import Any

from tinytorch.data.collate import default_collate, default_convert
from tinytorch.data.dataloader import DataLoader, _DatasetKind, get_worker_info  # noqa: F401
from tinytorch.data.dataset import *
from tinytorch.data.sampler import *
from tinytorch.utils.data import dataloader, dataset, distributed, sampler
from tinytorch.utils.data.distributed import DistributedSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "dataloader", "dataset", "default_collate", "default_convert", "distributed",
    "get_worker_info", "random_split", "sampler",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    pipes = {"IterDataPipe": "datapipe", "MapDataPipe": "datapipe", "functional_datapipe": "_decorator"}
    if name in pipes:
        return getattr(importlib.import_module(f"tinytorch.utils.data.datapipes.{pipes[name]}"), name)
    if name == "_utils":
        return importlib.import_module("tinytorch.utils.data._utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
