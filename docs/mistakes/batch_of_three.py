"""A batch of three is unpacked into two."""

import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.rand(6, 3), torch.arange(6), torch.arange(6))
for x, y in DataLoader(data, batch_size=2):
    #! for x, y, _ in DataLoader(data, batch_size=2):
    print(x.shape, y.shape)
