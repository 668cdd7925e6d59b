"""There are more labels than predictions.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(32, 10)
labels = torch.zeros(64, dtype=torch.long)
loss_fn(pred, labels)
#: loss_fn(pred, labels[:32])
