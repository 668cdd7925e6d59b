"""A layer in a tuple by a trailing comma.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4),
        #! self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)


Net()(torch.rand(2, 3))
