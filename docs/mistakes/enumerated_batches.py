"""enumerate's pair is not unpacked."""

import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(6, 3), torch.arange(6)), batch_size=2)
for i, x, y in enumerate(loader):
    #! for i, (x, y) in enumerate(loader):
    print(i, x.shape)
