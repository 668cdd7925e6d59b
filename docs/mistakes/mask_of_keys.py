"""scaled_dot_product_attention with a mask [batch, length]."""

import torch
import torch.nn.functional as F

q = k = v = torch.rand(3, 4, 7, 8)
keep = torch.ones(3, 7, dtype=torch.bool)
out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
#! out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
