"""The target of a transformer has another width.

Module: Transformer
"""

import torch
from torch import nn

model = nn.Transformer(d_model=32, nhead=4, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
model(torch.zeros(2, 5, 32), torch.zeros(2, 5, 16))
#: model(torch.zeros(2, 5, 32), torch.zeros(2, 5, 32))
