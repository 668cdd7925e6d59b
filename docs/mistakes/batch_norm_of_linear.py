"""A batch norm of images follows a linear layer.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm2d(8))
#! model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
model(torch.zeros(2, 4))
