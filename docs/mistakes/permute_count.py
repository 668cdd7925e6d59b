"""A permutation names too few dimensions."""

import torch

x = torch.zeros(2, 3, 4, 5)
y = x.permute(0, 2, 1)
#! y = x.permute(0, 2, 1, 3)
