"""A scaled tensor in a parameter group."""

import torch
from torch import nn

head = nn.Linear(4, 2)
prompt = 0.02 * torch.randn(5, 4, requires_grad=True)
#! prompt = (0.02 * torch.randn(5, 4)).requires_grad_()
opt = torch.optim.Adam([{"params": head.parameters()}, {"params": [prompt], "lr": 0.1}])
