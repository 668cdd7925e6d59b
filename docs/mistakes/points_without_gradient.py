"""The points by which is differentiated do not require a gradient."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.linspace(0, 1, 5).view(-1, 1)
#! x = torch.linspace(0, 1, 5).view(-1, 1).requires_grad_()
u = net(x)
torch.autograd.grad(u.sum(), x, create_graph=True)
