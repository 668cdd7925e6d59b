"""A pooling's number of sizes.

Module: 3
"""

import torch
from torch import nn

net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
#! net = nn.Sequential(nn.Conv1d(2, 4, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 2))
net(torch.rand(3, 2, 10))
