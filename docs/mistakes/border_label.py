"""Maps of labels with 255 for the border.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

out = torch.randn(2, 4, 5, 5)
mask = torch.randint(0, 4, (2, 5, 5))
mask[:, 0] = 255
loss = nn.CrossEntropyLoss()(out, mask)
#! loss = nn.CrossEntropyLoss(ignore_index=255)(out, mask)
