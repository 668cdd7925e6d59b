"""The method `forward` is misspelt.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def foward(self, x):
        #! def forward(self, x):
        return self.fc(x)


Net()(torch.zeros(1, 3))
