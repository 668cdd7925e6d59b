"""BatchNorm1d on (batch, time, features).

Module: bn
"""

import torch
from torch import nn


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(5, 16)
        self.bn = nn.BatchNorm1d(16)

    def forward(self, x):
        h = self.lin(x)
        return self.bn(h)
        #! return self.bn(h.transpose(1, 2)).transpose(1, 2)


Enc()(torch.rand(4, 9, 5))
