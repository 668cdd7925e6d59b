"""Rows of a list have different lengths."""

import torch
from torch import nn

rows = [[1, 2, 3], [4, 5]]
x = torch.tensor(rows)
#! x = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
