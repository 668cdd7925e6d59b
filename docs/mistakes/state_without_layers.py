"""The state of a batch lacks the dimension of layers.

Module: GRU
"""

import torch
from torch import nn

rnn = nn.GRU(4, 8)
state = torch.zeros(3, 8)
rnn(torch.zeros(5, 3, 4), state)
#! rnn(torch.zeros(5, 3, 4), state.unsqueeze(0))
