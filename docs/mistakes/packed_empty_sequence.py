"""A sequence has length zero."""

import torch
from torch import nn

x, lengths = torch.rand(3, 6, 4), torch.tensor([4, 6, 0])
p = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
#! p = nn.utils.rnn.pack_padded_sequence(x, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
