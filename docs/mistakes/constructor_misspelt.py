"""The constructor is called _init_."""

import torch
from torch import nn


class Net(nn.Module):
    def _init_(self, n):
        #! def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, 1)

    def forward(self, x):
        return self.fc(x)


net = Net(3)
net(torch.rand(2, 3))
