"""Differences of all pairs of points."""

import torch

p, c = torch.rand(100, 3), torch.rand(5, 3)
d = ((p - c) ** 2).sum(-1)
#! d = ((p.unsqueeze(1) - c) ** 2).sum(-1)
