"""Labels and predictions are swapped.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(4, 3)
y = torch.zeros(4, dtype=torch.long)
loss_fn(y, pred)
#! loss_fn(pred, y)
