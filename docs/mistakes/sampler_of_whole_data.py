"""A weighted sampler over the whole data for a subset."""

import torch
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
y = torch.randint(0, 2, (50,))
data = TensorDataset(torch.rand(50, 3), y)
train = Subset(data, range(30))
w = torch.tensor([1.0, 2.0])[y]
sampler = WeightedRandomSampler(w, len(w))
#! sampler = WeightedRandomSampler(w[train.indices], len(train))
for xb, yb in DataLoader(train, batch_size=10, sampler=sampler):
    pass
