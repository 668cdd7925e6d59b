"""One gray image has neither a batch dimension nor one of channels.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(1, 8, 3))
image = torch.zeros(28, 28)
model(image)
#! model(image.unsqueeze(0))
