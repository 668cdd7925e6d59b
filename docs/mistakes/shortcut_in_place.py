"""A skip connection after a strided block.

Module: Res
"""

import torch
from torch import nn


class Res(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, stride, 1)
        #! self.shortcut = nn.Conv2d(8, 16, 1, stride=2); self.conv = nn.Conv2d(i, o, 3, stride, 1)

    def forward(self, x):
        out = self.conv(x)
        out += x
        #! out += self.shortcut(x)
        return out


Res(8, 16, 2)(torch.rand(1, 8, 8, 8))
