"""Features of two branches are joined along the batch.

Module: head
"""

import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(6, 8)
        self.head = nn.Linear(16, 1)

    def forward(self, x, y):
        h = torch.cat([self.a(x), self.b(y)])
        #! h = torch.cat([self.a(x), self.b(y)], dim=1)
        return self.head(h)


Two()(torch.rand(3, 4), torch.rand(3, 6))
