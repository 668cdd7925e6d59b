"""The causal mask has the size of another sequence.

Module: layer.self_attn
"""

import torch
from torch import nn


class LM(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(block))

    def forward(self, x):
        return self.layer(x, src_mask=self.mask)
        #! return self.layer(x, src_mask=self.mask[:x.shape[1], :x.shape[1]])


LM(10)(torch.rand(2, 6, 16))
