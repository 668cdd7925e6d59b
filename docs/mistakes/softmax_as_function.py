"""A class is called as if it were the function of that name."""

import torch
from torch import nn

x = torch.zeros(4, 3)
y = nn.Softmax(x)
probs = y.sum()
#! probs = nn.Softmax(dim=-1)(x).sum()
