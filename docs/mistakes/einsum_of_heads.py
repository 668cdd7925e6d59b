"""A subscript of einsum lacks the heads."""

import torch

q, k = torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8)
s = torch.einsum("bqd,bkd->bqk", q, k)
#! s = torch.einsum("...qd,...kd->...qk", q, k)
