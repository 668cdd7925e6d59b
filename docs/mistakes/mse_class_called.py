"""The class of a loss is called with tensors."""

import torch
from torch import nn

pred = torch.zeros(4)
y = torch.ones(4)
loss = nn.MSELoss(pred, y)
#! loss = nn.MSELoss()(pred, y)
