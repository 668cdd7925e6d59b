"""The padding index is -1.

Module: Embedding
"""

import torch
from torch import nn

ids = torch.tensor([[3, 4, 5], [1, 2, -1]])
emb = nn.Embedding(10, 4)
print(emb(ids).shape)
#! print(emb(ids.clamp(min=0)).shape)
