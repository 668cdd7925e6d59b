"""Noise of a generator has no spatial dimensions.

Module: 0
"""

import torch
from torch import nn

G = nn.Sequential(nn.ConvTranspose2d(16, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1))
z = torch.randn(5, 16)
img = G(z)
#! img = G(z[:, :, None, None])
