"""The halves of a U-Net have different sizes.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 1, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(1, 1, 2, stride=2)

    def forward(self, x):
        y = self.up(self.down(x))
        return torch.cat([x, y], dim=1)
        #! return torch.cat([x, y[..., :x.shape[-2], :x.shape[-1]]], dim=1)


Net()(torch.zeros(1, 1, 9, 9))
