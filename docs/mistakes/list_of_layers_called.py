"""Layers in a list are called as one.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3) for _ in range(2)]
        #! self.layers = nn.Sequential(*[nn.Linear(3, 3) for _ in range(2)])

    def forward(self, x):
        return self.layers(x)


Net()(torch.rand(2, 3))
