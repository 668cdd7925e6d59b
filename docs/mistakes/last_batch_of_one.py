"""The last batch has one sample.

Module: 1
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
for x in DataLoader(torch.zeros(9, 4), batch_size=4):
    #! for x in DataLoader(torch.zeros(9, 4), batch_size=4, drop_last=True):
    model(x)
