"""A view has another number of elements."""

import torch

x = torch.zeros(32, 16, 5, 5)
y = x.view(32, 120)
#! y = x.view(32, -1)
