"""Targets of a binary cross entropy are integers.

Module: BCELoss
"""

import torch
from torch import nn

loss_fn = nn.BCELoss()
pred = torch.full((4,), 0.5)
y = torch.tensor([0, 1, 1, 0])
loss_fn(pred, y)
#! loss_fn(pred, y.float())
