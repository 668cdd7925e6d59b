"""PyTorch's name, `torch.utils.data`, for what `tinytorch.data` holds."""

# ruff: noqa: F403, F405

from tinytorch.data.collate import default_collate, default_convert
from tinytorch.data.dataloader import DataLoader, get_worker_info
from tinytorch.data.dataset import *
from tinytorch.data.sampler import *
from tinytorch.utils.data import _utils as _utils
from tinytorch.utils.data import dataloader, dataset, distributed, sampler
from tinytorch.utils.data.distributed import DistributedSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "dataloader", "dataset", "default_collate", "default_convert", "distributed",
    "get_worker_info", "random_split", "sampler",
]  # fmt: skip
