"""A transposed tensor has no view of that shape."""

import torch

x = torch.zeros(4, 3).t()
y = x.view(12)
#! y = x.reshape(12)
