"""Losses are added to a list and backward is called on the list."""

import torch
from torch import nn

net = nn.Linear(2, 1)
losses = []
for _ in range(3):
    losses.append(net(torch.rand(4, 2)).mean())
losses.backward()
#! torch.stack(losses).sum().backward()
