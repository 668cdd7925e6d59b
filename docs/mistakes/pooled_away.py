"""A pooling is larger than what it pools.

Module: 2
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(8))
#! model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(4))
model(torch.zeros(1, 1, 6, 6))
