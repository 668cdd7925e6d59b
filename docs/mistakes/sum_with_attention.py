"""MultiheadAttention returns a pair.

Module: Block
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(x + self.attn(x, x, x))
        #! return self.norm(x + self.attn(x, x, x)[0])


Block()(torch.rand(2, 5, 16))
