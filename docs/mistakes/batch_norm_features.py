"""The batch norm has another number of channels than the convolution.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(32))
#! model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16))
model(torch.zeros(2, 3, 8, 8))
