"""A layer norm gets the channels first.

Module: LayerNorm
"""

import torch
from torch import nn

conv, norm = nn.Conv1d(3, 8, 1), nn.LayerNorm(8)
norm(conv(torch.zeros(2, 3, 20)))
#! norm(conv(torch.zeros(2, 3, 20)).transpose(-2, -1)).transpose(-2, -1)
