"""Predictions have a column, targets do not.

Module: BCEWithLogitsLoss
"""

import torch
from torch import nn

loss_fn = nn.BCEWithLogitsLoss()
pred = torch.zeros(4, 1)
y = torch.zeros(4)
loss_fn(pred, y)
#! loss_fn(pred, y.unsqueeze(1))
