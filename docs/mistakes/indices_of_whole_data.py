"""Indices of the whole data for a part of it."""

import torch
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset

data = TensorDataset(torch.rand(50, 3))
idx = torch.randperm(50).tolist()
train, valid = idx[:40], idx[40:]
loader = DataLoader(Subset(data, train), batch_size=8, sampler=SubsetRandomSampler(train))
#! loader = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(train))
for (x,) in loader:
    pass
