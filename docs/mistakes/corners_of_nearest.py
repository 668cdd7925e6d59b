"""The mode of an interpolation has no corners to align."""

import torch
from torch import nn

x = torch.zeros(1, 3, 4, 4)
nn.functional.interpolate(x, scale_factor=2, align_corners=True)
#! nn.functional.interpolate(x, scale_factor=2)
