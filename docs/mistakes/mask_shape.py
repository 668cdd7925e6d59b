"""A mask has another shape."""

import torch

x = torch.zeros(4, 3)
mask = torch.ones(3, dtype=torch.bool)
y = x[mask]
#! y = x[:, mask]
