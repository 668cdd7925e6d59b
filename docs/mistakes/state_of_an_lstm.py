"""A GRU gets both states of an LSTM.

Module: GRU
"""

import torch
from torch import nn

lstm, gru = nn.LSTM(4, 8), nn.GRU(4, 8)
_, state = lstm(torch.zeros(5, 3, 4))
gru(torch.zeros(5, 3, 4), state)
#! gru(torch.zeros(5, 3, 4), state[0])
