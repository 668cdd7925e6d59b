"""The two classes are numbered 1 and 2.

Module: BCELoss
"""

import torch
from torch import nn

loss_fn = nn.BCELoss()
pred = torch.tensor([0.9, 0.2])
y = torch.tensor([2.0, 1.0])
loss_fn(pred, y)
#! loss_fn(pred, y - 1)
