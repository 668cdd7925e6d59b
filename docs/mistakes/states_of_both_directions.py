"""The last state of a recurrent layer with two directions is that of one.

Module: Linear
"""

import torch
from torch import nn

lstm, head = nn.LSTM(4, 8, bidirectional=True), nn.Linear(16, 2)
out, (h, c) = lstm(torch.zeros(5, 3, 4))
head(h[-1])
#! head(torch.cat([h[-2], h[-1]], dim=1))
