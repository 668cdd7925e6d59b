"""The result of an LSTM is used like a tensor."""

import torch
from torch import nn

lstm = nn.LSTM(8, 16)
out = lstm(torch.zeros(5, 3, 8))
#! out, _ = lstm(torch.zeros(5, 3, 8))
loss = out.mean()
