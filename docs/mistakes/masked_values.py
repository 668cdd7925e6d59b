"""Values of another number than the mask has."""

import torch

x = torch.rand(4, 3)
mask = x > 2
mask[0] = True
x[mask] = torch.zeros(4, 3)
#! x[mask] = torch.zeros(4, 3)[mask]
