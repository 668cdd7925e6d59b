"""TensorDataset of a list and an array."""

import torch
import numpy as np
from torch.utils.data import DataLoader, TensorDataset

X = np.random.rand(6, 3).astype("float32")
y = torch.arange(6)
data = TensorDataset(X, y)
#! data = TensorDataset(torch.from_numpy(X), y)
