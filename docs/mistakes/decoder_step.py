"""A decoder's step has no time dimension.

Module: rnn
"""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.rnn = nn.GRU(8, 16, batch_first=True)

    def forward(self, token, h):
        out, h = self.rnn(self.emb(token), h)
        #! out, h = self.rnn(self.emb(token).unsqueeze(1), h)
        return out, h


Decoder()(torch.tensor([1, 2, 3]), torch.zeros(1, 3, 16))
