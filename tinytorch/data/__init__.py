"""Datasets, samplers, collation and the `DataLoader`; image datasets and transforms.

`tinytorch.utils.data` re-exports the names of PyTorch's; `vision` and `transforms` have torchvision's names, and so has
`datasets`, where a new data set goes.
"""

# ruff: noqa: F403, F405

from tinytorch.data import transforms, vision
from tinytorch.data.collate import default_collate, default_convert
from tinytorch.data.dataloader import DataLoader, get_worker_info
from tinytorch.data.dataset import *
from tinytorch.data.drawn import DrawnFashion, fashion_or_drawn
from tinytorch.data.sampler import *
from tinytorch.data.vision import KMNIST, MNIST, FashionMNIST

__all__ = [
    "KMNIST", "MNIST", "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DrawnFashion",
    "FashionMNIST", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
    "fashion_or_drawn", "get_worker_info", "random_split", "transforms", "vision",
]  # fmt: skip
