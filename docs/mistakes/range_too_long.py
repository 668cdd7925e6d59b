"""A loop has one step more than there are elements."""

import torch

xs = torch.zeros(3, 2)
for i in range(4):
    #! for i in range(len(xs)):
    xs[i].sum()
