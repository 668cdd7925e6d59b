"""A dimension is out of range after an unbatched sample."""

import torch

x = torch.rand(5, 8)
y = x.transpose(1, 2)
#! y = x.transpose(0, 1)
