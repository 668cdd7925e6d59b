"""A sinusoidal embedding of integer times.

Module: 0
"""

import torch
from torch import nn

t = torch.randint(0, 100, (4,))
mlp = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 8))
emb = mlp(t)
#! emb = mlp(t.unsqueeze(-1).float())
