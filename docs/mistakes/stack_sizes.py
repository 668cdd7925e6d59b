"""Tensors of different shapes are stacked."""

import torch
from torch import nn

x, y = torch.zeros(3), torch.zeros(5)
z = torch.stack([x, y])
#! z = nn.utils.rnn.pad_sequence([x, y], batch_first=True)
