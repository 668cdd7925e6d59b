"""A permutation of four dimensions for a tensor of three."""

import torch

img = torch.rand(32, 32, 3)
x = img.permute(0, 3, 1, 2)
#! x = img.permute(2, 0, 1)
