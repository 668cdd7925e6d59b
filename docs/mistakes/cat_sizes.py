"""Tensors are joined along the wrong dimension."""

import torch

x = torch.zeros(4, 3)
y = torch.zeros(4, 5)
z = torch.cat([x, y])
#! z = torch.cat([x, y], dim=1)
