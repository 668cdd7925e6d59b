"""A pixel shuffle needs as many channels as the square of its factor.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1),
    #! nn.Conv2d(3, 12, 3, padding=1),
    nn.PixelShuffle(2),
)
model(torch.zeros(1, 3, 4, 4))
