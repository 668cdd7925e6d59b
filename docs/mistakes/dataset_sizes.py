"""Inputs and labels differ in number."""

import torch
from torch.utils.data import TensorDataset

x, y = torch.zeros(100, 3), torch.zeros(99)
data = TensorDataset(x, y)
#: data = TensorDataset(x[:99], y)
