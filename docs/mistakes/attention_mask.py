"""The mask of attention is for another length.

Module: MultiheadAttention
"""

import torch
from torch import nn

attention = nn.MultiheadAttention(16, 4, batch_first=True)
x = torch.zeros(2, 10, 16)
mask = nn.Transformer.generate_square_subsequent_mask(8)
#! mask = nn.Transformer.generate_square_subsequent_mask(10)
attention(x, x, x, attn_mask=mask)
