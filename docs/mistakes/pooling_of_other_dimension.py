"""MaxPool2d in a network for sequences.

Module: fc
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)
        self.pool = nn.MaxPool2d(2)
        #! self.pool = nn.MaxPool1d(2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc(self.pool(torch.relu(self.conv(x))).flatten(1))


Net()(torch.rand(3, 2, 10))
