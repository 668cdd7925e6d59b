"""pad_sequence of sequences with time in the last dimension."""

import torch
from torch import nn

mels = [torch.rand(8, 20), torch.rand(8, 15)]
x = nn.utils.rnn.pad_sequence(mels, batch_first=True)
#! x = nn.utils.rnn.pad_sequence([each.transpose(0, 1) for each in mels], batch_first=True)
