"""Labels have a second dimension.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(4, 3)
y = torch.zeros(4, 1, dtype=torch.long)
loss_fn(pred, y)
#! loss_fn(pred, y.squeeze(1))
