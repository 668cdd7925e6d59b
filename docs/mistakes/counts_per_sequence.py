"""A sum over tokens is divided by counts per sequence."""

import torch

h, mask = torch.rand(4, 9, 16), torch.ones(4, 9)
pooled = (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1)
#! pooled = (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1).unsqueeze(-1)
