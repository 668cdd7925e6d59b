"""`mm` multiplies matrices, not batches."""

import torch

a = torch.zeros(2, 3, 4)
b = torch.zeros(2, 4, 5)
c = torch.mm(a, b)
#! c = torch.matmul(a, b)
