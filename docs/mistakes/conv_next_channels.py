"""Two convolutions do not fit together.

Module: 2
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(32, 64, 3))
#! model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 64, 3))
model(torch.zeros(1, 3, 32, 32))
