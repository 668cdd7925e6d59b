"""The class of a loss is called as if it were the function."""

import torch
from torch import nn

pred = torch.zeros(4, 3)
y = torch.zeros(4, dtype=torch.long)
loss = nn.CrossEntropyLoss(pred, y)
#! loss = nn.CrossEntropyLoss()(pred, y)
