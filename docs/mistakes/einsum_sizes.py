"""The same letter stands for two sizes."""

import torch

a = torch.zeros(3, 4)
b = torch.zeros(5, 6)
c = torch.einsum("ij,jk->ik", a, b)
#: c = torch.einsum("ij,lk->ik", a, b)
