"""Attention needs query, key and value.

Module: MultiheadAttention
"""

import torch
from torch import nn

attention = nn.MultiheadAttention(16, 4, batch_first=True)
x = torch.zeros(2, 10, 16)
attention(x)
#! attention(x, x, x)
