"""A dimension does not exist."""

import torch

x = torch.zeros(4, 3)
y = x.sum(dim=2)
#! y = x.sum(dim=-1)
