"""Class labels start at 1.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(3, 3)
y = torch.tensor([1, 2, 3])
loss_fn(pred, y)
#! loss_fn(pred, y - 1)
