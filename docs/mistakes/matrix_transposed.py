"""A matrix is added to one with exchanged dimensions."""

import torch

a, b = torch.zeros(3, 5), torch.zeros(5, 3)
a + b
#! a + b.T
