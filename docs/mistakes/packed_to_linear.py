"""A packed sequence goes into a linear layer.

Module: Linear
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

rnn, fc = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)
x = pack_padded_sequence(torch.rand(3, 5, 4), [5, 3, 2], batch_first=True)
out, _ = rnn(x)
y = fc(out)
#! y = fc(nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0])
