"""Bilinear interpolation of a volume."""

import torch
import torch.nn.functional as F

x = torch.rand(1, 3, 4, 8, 8)
y = F.interpolate(x, scale_factor=2, mode="bilinear")
#! y = F.interpolate(x, scale_factor=2, mode="trilinear")
