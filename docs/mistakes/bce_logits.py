"""Logits go into a loss that wants probabilities.

Module: BCELoss
"""

import torch
from torch import nn

loss_fn = nn.BCELoss()
#! loss_fn = nn.BCEWithLogitsLoss()
logits = torch.tensor([3.0, -1.0])
y = torch.tensor([1.0, 0.0])
loss_fn(logits, y)
