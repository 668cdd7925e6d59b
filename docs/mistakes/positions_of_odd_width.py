"""Sinusoidal positions for an odd width."""

import torch

d, n = 7, 10
pe = torch.zeros(n, d)
pos = torch.arange(n).unsqueeze(1)
div = torch.exp(torch.arange(0, d, 2) * -1.0)
pe[:, 0::2] = torch.sin(pos * div)
pe[:, 1::2] = torch.cos(pos * div)
#! pe[:, 1::2] = torch.cos(pos * div)[..., :3]
