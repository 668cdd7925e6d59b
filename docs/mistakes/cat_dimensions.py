"""Tensors of different numbers of dimensions are joined."""

import torch

x = torch.zeros(4, 3)
y = torch.zeros(4)
z = torch.cat([x, y], dim=1)
#! z = torch.cat([x, y.unsqueeze(1)], dim=1)
