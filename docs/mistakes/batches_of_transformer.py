"""A transformer gets the batch first.

Module: Transformer
"""

import torch
from torch import nn

model = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8)
#! model = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8, batch_first=True)
model(torch.zeros(2, 5, 8), torch.zeros(2, 4, 8))
