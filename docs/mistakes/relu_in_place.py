"""An in-place ReLU changes the output of a sigmoid."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(4, 1))
#! net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.ReLU(), nn.Linear(4, 1))
net(torch.rand(2, 3)).sum().backward()
