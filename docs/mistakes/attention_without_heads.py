"""The scores of attention are a product of matrices that are not transposed."""

import torch

q = torch.zeros(2, 10, 16)
k = torch.zeros(2, 10, 16)
scores = q @ k
#! scores = q @ k.transpose(-2, -1)
