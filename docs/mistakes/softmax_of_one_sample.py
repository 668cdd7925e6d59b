"""Softmax over dimension 1 of a single sample.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
#! model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=-1))
p = model(torch.rand(4))
