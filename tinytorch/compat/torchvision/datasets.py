"""`torchvision.datasets`, the part that tinytorch implements."""

from __future__ import annotations

from typing import NoReturn

from tinytorch.data.datasets import CIFAR10, CIFAR100, EMNIST, DatasetFolder, FakeData, ImageFolder
from tinytorch.data.vision import KMNIST, MNIST, FashionMNIST, VisionDataset

from . import missing as _missing

__all__ = [
    "CIFAR10", "CIFAR100", "EMNIST", "KMNIST", "MNIST", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder",
    "VisionDataset",
]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(_missing(name))
