"""A sequence has no layer of that index.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x):
        return self.layers[2](x)
        #! return self.layers[1](x)


Net()(torch.zeros(1, 3))
