"""Images are bytes.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3))
images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
model(images)
#! model(images.float())
