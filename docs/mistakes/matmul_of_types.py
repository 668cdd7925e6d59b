"""The factors of a product have different types."""

import torch

a = torch.zeros(3, 4)
b = torch.zeros(4, 5, dtype=torch.float64)
c = a @ b
#! c = a @ b.to(a.dtype)
