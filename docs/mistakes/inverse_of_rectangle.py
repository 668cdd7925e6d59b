"""The inverse of a matrix that is not square."""

import torch

a = torch.rand(4, 3)
b = torch.linalg.inv(a)
#! b = torch.linalg.pinv(a)
