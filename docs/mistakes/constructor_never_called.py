"""The constructor without arguments is called _init_.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def _init_(self):
        #! def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(x)


net = Net()
net(torch.rand(2, 3))
