"""A method of NumPy arrays."""

import torch

x = torch.zeros(3)
y = x.astype(torch.float64)
#! y = x.to(torch.float64)
