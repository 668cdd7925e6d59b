"""mT-like transposition of a batch by t()."""

import torch

x = torch.rand(2, 3, 4)
y = x.t()
#! y = x.transpose(-2, -1)
