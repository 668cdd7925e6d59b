"""One-hot masks with classes last.

Module: MSELoss
"""

import torch
from torch import nn
import torch.nn.functional as F

out = torch.randn(2, 4, 8, 8)
mask = torch.randint(0, 4, (2, 8, 8))
loss = nn.MSELoss()(out.softmax(1), F.one_hot(mask, 4).float())
#! loss = nn.MSELoss()(out.softmax(1), F.one_hot(mask, 4).float().permute(0, 3, 1, 2))
