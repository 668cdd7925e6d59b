"""A padding mask is given as attention mask.

Module: layers.0.self_attn
"""

import torch
from torch import nn

enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)
x = torch.rand(3, 7, 16)
pad = torch.zeros(3, 7, dtype=torch.bool)
enc(x, pad)
#! enc(x, src_key_padding_mask=pad)
