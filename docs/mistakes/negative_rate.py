"""A learning rate is negative."""

import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=-0.001)
#! optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
