"""The state of a recurrent layer has the batch second, whatever the input has.

Module: GRU
"""

import torch
from torch import nn

rnn = nn.GRU(4, 8, batch_first=True)
state = torch.zeros(3, 1, 8)
rnn(torch.zeros(3, 5, 4), state)
#! rnn(torch.zeros(3, 5, 4), state.transpose(0, 1))
