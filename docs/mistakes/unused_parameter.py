"""A gradient is asked for a parameter that the loss does not depend on."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 1)
        self.spare = nn.Linear(2, 1)

    def forward(self, x):
        return self.used(x)


net = Net()
loss = net(torch.ones(1, 2)).sum()
torch.autograd.grad(loss, list(net.parameters()))
#! torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
