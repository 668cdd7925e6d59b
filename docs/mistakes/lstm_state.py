"""An LSTM has two states, a GRU one.

Module: LSTM
"""

import torch
from torch import nn

lstm = nn.LSTM(8, 16)
h = torch.zeros(1, 3, 16)
lstm(torch.zeros(5, 3, 8), h)
#! lstm(torch.zeros(5, 3, 8), (h, torch.zeros_like(h)))
