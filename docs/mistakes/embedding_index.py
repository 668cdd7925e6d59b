"""A token is not in the vocabulary: tokens go from 1 to 100.

Module: embedding
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 16)
        #! self.embedding = nn.Embedding(101, 16)

    def forward(self, tokens):
        return self.embedding(tokens)


Net()(torch.tensor([[1, 7, 100]]))
