"""One image without batch in a model with a Flatten.

Module: 3
"""

import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 2))
img = torch.rand(3, 8, 8)
print(model(img))
#! print(model(img.unsqueeze(0)))
