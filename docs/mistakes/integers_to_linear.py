"""Integers go into a linear layer.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 2))
data = torch.tensor([[1, 2, 3]])
model(data)
#! model(data.float())
