"""A causal mask buffer of the whole context for a shorter sequence.

Module: Attn
"""

import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, context=64):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(context, context)))

    def forward(self, q, k):
        att = q @ k.transpose(-2, -1)
        att = att.masked_fill(self.mask == 0, float("-inf"))
        #! att = att.masked_fill(self.mask[:att.shape[-2], :att.shape[-1]] == 0, float("-inf"))
        return att.softmax(-1)


q = torch.rand(2, 4, 10, 8)
Attn()(q, q)
