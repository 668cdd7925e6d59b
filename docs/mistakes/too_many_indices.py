"""A vector has one index."""

import torch

x = torch.zeros(3)
y = x[0, 1]
#: y = x[0]
