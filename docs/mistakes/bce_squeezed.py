"""Targets have a column, predictions do not.

Module: BCELoss
"""

import torch
from torch import nn

loss_fn = nn.BCELoss()
pred = torch.full((4,), 0.5)
y = torch.zeros(4, 1)
loss_fn(pred, y)
#! loss_fn(pred, y.squeeze(1))
