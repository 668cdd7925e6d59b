"""Class labels are floats.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(4, 3)
y = torch.tensor([0.0, 1.0, 2.0, 1.0])
loss_fn(pred, y)
#! loss_fn(pred, y.long())
