"""randperm with a seed instead of a generator."""

import torch
from torch.utils.data import TensorDataset, random_split

data = TensorDataset(torch.rand(10, 2))
a, b = random_split(data, [8, 2], generator=42)
#! a, b = random_split(data, [8, 2], generator=torch.Generator().manual_seed(42))
