"""A recurrent layer gets images.

Module: GRU
"""

import torch
from torch import nn

gru = nn.GRU(28, 16, batch_first=True)
images = torch.zeros(4, 1, 28, 28)
gru(images)
#! gru(images.squeeze(1))
