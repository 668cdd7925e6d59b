"""A query of one vector per sample attends to a sequence.

Module: attn
"""

import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, 4, batch_first=True)
        self.query = nn.Parameter(torch.randn(1, d))

    def forward(self, x):
        q = self.query.expand(x.shape[0], -1)
        out, _ = self.attn(q, x, x)
        #! out, _ = self.attn(q.unsqueeze(1), x, x)
        return out


Pool()(torch.rand(3, 7, 16))
