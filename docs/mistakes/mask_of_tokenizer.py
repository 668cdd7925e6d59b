"""An integer attention mask of a tokenizer.

Module: MultiheadAttention
"""

import torch
from torch import nn

attn = nn.MultiheadAttention(16, 2, batch_first=True)
x = torch.rand(2, 5, 16)
mask = torch.ones(2, 5, dtype=torch.long)
out, _ = attn(x, x, x, key_padding_mask=mask)
#! out, _ = attn(x, x, x, key_padding_mask=mask == 0)
