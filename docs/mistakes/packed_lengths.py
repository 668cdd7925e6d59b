"""The lengths of packed sequences are not sorted."""

import torch
from torch import nn

x = torch.zeros(2, 5, 3)
nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 5]), batch_first=True)
#! nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 5]), batch_first=True, enforce_sorted=False)
