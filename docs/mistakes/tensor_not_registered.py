"""A constant matrix that is a plain attribute.

Module: Fixed
"""

import torch
from torch import nn


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.randn(4, 4)
        #! self.register_buffer("proj", torch.randn(4, 4))
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x @ self.proj)


m = Fixed().double()
m(torch.rand(3, 4, dtype=torch.float64))
