"""The shortcut of a residual block has another number of channels.

Module: 0
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        #! super().__init__(); self.shortcut = nn.Conv2d(3, 8, 1) if channels != out else nn.Identity()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        return x + self.conv(x)
        #! return self.shortcut(x) + self.conv(x)


model = nn.Sequential(Block(3, 8), Block(8, 8))
model(torch.zeros(1, 3, 8, 8))
