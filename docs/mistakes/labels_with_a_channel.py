"""A map of labels has a dimension of channels.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

model = nn.Conv2d(3, 4, 1)
mask = torch.zeros(2, 1, 8, 8, dtype=torch.long)
nn.CrossEntropyLoss()(model(torch.zeros(2, 3, 8, 8)), mask)
#! nn.CrossEntropyLoss()(model(torch.zeros(2, 3, 8, 8)), mask.squeeze(1))
