"""Attention with the batch first, made for the length first.

Module: enc.layers.0.self_attn
"""

import torch
from torch import nn


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32)
        #! layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)

    def forward(self, x, pad):
        return self.enc(x, src_key_padding_mask=pad)
        #| return self.enc(x, src_key_padding_mask=pad.transpose(0, 1))


Enc()(torch.rand(3, 7, 16), torch.zeros(3, 7, dtype=torch.bool))
