"""The padding mask is transposed.

Module: MultiheadAttention
"""

import torch
from torch import nn

attention = nn.MultiheadAttention(16, 4, batch_first=True)
x = torch.zeros(2, 10, 16)
padding = torch.zeros(10, 2, dtype=torch.bool)
attention(x, x, x, key_padding_mask=padding)
#! attention(x, x, x, key_padding_mask=padding.transpose(0, 1))
