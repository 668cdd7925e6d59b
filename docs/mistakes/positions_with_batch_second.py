"""Positions [length, 1, d] with batch-first embeddings.

Module: PE
"""

import torch
from torch import nn


class PE(nn.Module):
    def __init__(self, d=8, n=50):
        super().__init__()
        self.register_buffer("pe", torch.rand(n, 1, d))

    def forward(self, x):
        return x + self.pe[:x.size(1)]
        #! return x + self.pe[:x.size(1)].transpose(0, 1)


PE()(torch.rand(3, 20, 8))
