"""memory_mask is given the padding mask.

Module: layers.0.multihead_attn
"""

import torch
from torch import nn

dec = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), 1)
tgt, mem = torch.rand(3, 5, 16), torch.rand(3, 7, 16)
pad = torch.zeros(3, 7, dtype=torch.bool)
out = dec(tgt, mem, memory_mask=pad)
#! out = dec(tgt, mem, memory_key_padding_mask=pad)
