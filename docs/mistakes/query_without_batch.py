"""A learned query is not expanded to the batch.

Module: MultiheadAttention
"""

import torch
from torch import nn

attn = nn.MultiheadAttention(16, 4, batch_first=True)
query = nn.Parameter(torch.randn(1, 4, 16))
x = torch.rand(3, 7, 16)
out, _ = attn(query, x, x)
#! out, _ = attn(query.expand(x.shape[0], -1, -1), x, x)
