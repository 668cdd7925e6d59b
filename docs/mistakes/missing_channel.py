"""A batch of gray images has no dimension of channels.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 8, 3))
images = torch.zeros(16, 28, 28)
model(images)
#! model(images.unsqueeze(1))
