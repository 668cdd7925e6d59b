"""The parts of a split do not add up."""

import torch
from torch.utils.data import TensorDataset, random_split

data = TensorDataset(torch.rand(101, 3))
n = len(data)
a, b = random_split(data, [int(0.8 * n), int(0.2 * n)])
#! a, b = random_split(data, [int(0.8 * n), n - int(0.8 * n)])
