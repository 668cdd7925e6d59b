"""The state of the last batch still has its graph."""

import torch
from torch import nn

rnn = nn.RNN(4, 8)
h = torch.zeros(1, 1, 8)
for step in range(2):
    out, h = rnn(torch.zeros(5, 1, 4), h)
    #! out, h = rnn(torch.zeros(5, 1, 4), h.detach())
    out.sum().backward()
