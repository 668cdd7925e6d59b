"""A model of one input gets two.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


x, mask = torch.zeros(1, 3), torch.zeros(1, 3)
Net()(x, mask)
#: Net()(x)
