"""Two linear layers of a sequence do not fit together.

Module: 2
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(32, 10))
#! model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
model(torch.zeros(5, 20))
