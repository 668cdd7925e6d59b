"""A list of modules cannot be called.

Module: layers
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        return self.layers(x)
        #! return nn.Sequential(*self.layers)(x)


Net()(torch.zeros(1, 3))
