"""A bidirectional encoder's state goes to a decoder of one direction.

Module: dec
"""

import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.GRU(4, 8, batch_first=True, bidirectional=True)
        self.dec = nn.GRU(4, 8, batch_first=True)

    def forward(self, x, y):
        _, h = self.enc(x)
        out, _ = self.dec(y, h)
        #! out, _ = self.dec(y, h[0::2] + h[1::2])
        return out


Seq2Seq()(torch.rand(2, 5, 4), torch.rand(2, 6, 4))
