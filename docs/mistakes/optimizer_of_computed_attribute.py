"""A module's attribute computed from a parameter is optimized."""

import torch
from torch import nn


class P(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Parameter(torch.rand(3))
        self.w = self.base * 2


p = P()
opt = torch.optim.SGD([p.w], lr=0.1)
#! opt = torch.optim.SGD([p.base], lr=0.1)
