"""A layer after an LSTM in a sequence gets a tuple.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(nn.LSTM(8, 16), nn.Linear(16, 2))
model(torch.zeros(5, 3, 8))
#! model[1](model[0](torch.zeros(5, 3, 8))[0])
