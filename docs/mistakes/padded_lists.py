"""pad_sequence of lists."""

import torch
from torch import nn

rows = [[1, 2, 3], [4, 5]]
x = nn.utils.rnn.pad_sequence(rows, batch_first=True)
#! x = nn.utils.rnn.pad_sequence([torch.tensor(each) for each in rows], batch_first=True)
