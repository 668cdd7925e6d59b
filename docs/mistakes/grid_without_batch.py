"""A grid for another number of dimensions."""

import torch
import torch.nn.functional as F

img = torch.rand(2, 3, 8, 8)
grid = torch.rand(8, 8, 2)
out = F.grid_sample(img, grid)
#! out = F.grid_sample(img, grid.expand(img.shape[0], -1, -1, -1))
