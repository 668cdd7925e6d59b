"""A GRU returns one state, not two."""

import torch
from torch import nn

rnn = nn.GRU(4, 8)
out, (h, c) = rnn(torch.zeros(5, 3, 4))
#! out, h = rnn(torch.zeros(5, 3, 4))
