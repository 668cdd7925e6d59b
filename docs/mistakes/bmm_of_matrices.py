"""`bmm` multiplies batches, not matrices."""

import torch

a = torch.zeros(3, 4)
b = torch.zeros(4, 5)
c = torch.bmm(a, b)
#! c = torch.matmul(a, b)
