"""The shortcut of a residual block has other channels and another size.

Module: Block
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        #! super().__init__(); self.shortcut = nn.Conv2d(4, 8, 1, stride=2)
        self.conv = nn.Conv2d(4, 8, 3, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x) + x
        #! return self.conv(x) + self.shortcut(x)


Block()(torch.zeros(1, 4, 8, 8))
