"""The image has become smaller than the kernel.

Module: 2
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(4), nn.Conv2d(4, 8, 3))
#! model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(4), nn.Conv2d(4, 8, 3, padding=1))
model(torch.zeros(1, 1, 10, 10))
