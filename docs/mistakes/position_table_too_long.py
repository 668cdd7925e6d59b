"""A positional table that is longer than the sequence.

Module: Enc
"""

import torch
from torch import nn


class Enc(nn.Module):
    def __init__(self, length=50, dim=16):
        super().__init__()
        self.register_buffer("pe", torch.randn(1, length, dim))

    def forward(self, x):
        return x + self.pe
        #! return x + self.pe[:, :x.shape[1]]


Enc()(torch.rand(4, 20, 16))
