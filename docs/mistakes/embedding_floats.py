"""Indices of an embedding are floats.

Module: embedding
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 16)

    def forward(self, tokens):
        return self.embedding(tokens)
        #! return self.embedding(tokens.long())


Net()(torch.zeros(2, 5))
