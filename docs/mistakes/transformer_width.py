"""The encoder's width is not that of the input.

Module: layers.0.self_attn
"""

import torch
from torch import nn

encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 1)
#! encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, batch_first=True), 1)
encoder(torch.zeros(2, 10, 32))
