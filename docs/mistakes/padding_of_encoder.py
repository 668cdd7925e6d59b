"""The padding mask of an encoder has the batch second.

Module: layers.0.self_attn
"""

import torch
from torch import nn

layer = nn.TransformerEncoderLayer(8, 2, 16)
padding = torch.zeros(7, 3, dtype=torch.bool)
nn.TransformerEncoder(layer, 1)(torch.zeros(7, 3, 8), src_key_padding_mask=padding)
#! nn.TransformerEncoder(layer, 1)(torch.zeros(7, 3, 8), src_key_padding_mask=padding.transpose(0, 1))
#| nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
