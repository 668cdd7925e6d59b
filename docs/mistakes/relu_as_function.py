"""The class of an activation is called with a tensor.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return nn.ReLU(self.fc(x)).sum()
        #! return nn.ReLU()(self.fc(x)).sum()


Net()(torch.zeros(4, 3))
