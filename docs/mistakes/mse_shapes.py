"""Predictions and targets have shapes that do not broadcast.

Module: MSELoss
"""

import torch
from torch import nn

loss_fn = nn.MSELoss()
pred = torch.zeros(32, 10)
y = torch.zeros(32)
loss_fn(pred, y)
#: loss_fn(pred, y.unsqueeze(1).expand(32, 10))
