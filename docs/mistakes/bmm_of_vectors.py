"""bmm of a matrix per sample with a vector per sample."""

import torch

A, v = torch.rand(4, 3, 5), torch.rand(4, 5)
y = torch.bmm(A, v)
#! y = torch.bmm(A, v.unsqueeze(-1)).squeeze(-1)
