"""The weights of the classes have another number.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss(weight=torch.ones(2))
#: loss_fn = nn.CrossEntropyLoss(weight=torch.ones(3))
loss_fn(torch.zeros(4, 3), torch.zeros(4, dtype=torch.long))
