"""A GRU's state is kept as attribute of a module between steps."""

import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.h = None

    def forward(self, x):
        if self.h is None:
            self.h = torch.zeros(len(x), 4)
        self.h = self.cell(x, self.h)
        #! self.h = self.cell(x, self.h.detach())
        return self.h


net = Memory()
for _ in range(2):
    net(torch.rand(2, 3)).sum().backward()
