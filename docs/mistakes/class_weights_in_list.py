"""Class weights as a list."""

import torch
from torch import nn

crit = nn.CrossEntropyLoss(weight=[1.0, 2.0, 1.0])
#! crit = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0]))
loss = crit(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))
