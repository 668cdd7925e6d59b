"""Nesterov's method needs a momentum."""

import torch
from torch import nn

torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1, nesterov=True)
#! torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1, nesterov=True, momentum=0.9)
