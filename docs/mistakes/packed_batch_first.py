"""batch_first is forgotten in pack_padded_sequence."""

import torch
from torch import nn

x, lengths = torch.rand(3, 6, 4), torch.tensor([6, 4, 2])
p = nn.utils.rnn.pack_padded_sequence(x, lengths)
#! p = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
