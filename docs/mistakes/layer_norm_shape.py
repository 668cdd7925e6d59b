"""The layer norm is for another number of features.

Module: norm
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(128)
        #! self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return x + self.norm(x)


Block()(torch.zeros(2, 10, 64))
