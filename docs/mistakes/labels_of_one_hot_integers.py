"""One-hot labels are integers.

Module: CrossEntropyLoss
"""

import torch
import torch.nn.functional as F
from torch import nn

loss_fn = nn.CrossEntropyLoss()
pred = torch.zeros(4, 3)
y = F.one_hot(torch.tensor([0, 1, 2, 0]), 3)
loss_fn(pred, y)
#! loss_fn(pred, y.float())
