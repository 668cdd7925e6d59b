"""Images of matplotlib or PIL have their channels last.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3))
images = torch.zeros(2, 32, 32, 3)
model(images)
#! model(images.permute(0, 3, 1, 2))
