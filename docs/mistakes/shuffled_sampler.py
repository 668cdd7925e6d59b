"""A sampler and `shuffle` exclude each other."""

import torch
from torch.utils.data import DataLoader, SequentialSampler

data = [torch.zeros(3)] * 4
loader = DataLoader(data, shuffle=True, sampler=SequentialSampler(data))
#! loader = DataLoader(data, sampler=SequentialSampler(data))
