"""A class of a layer is used as a function in forward.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.act = nn.ReLU
        #! self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.fc(x)).sum()


Net()(torch.rand(2, 3))
