"""A scaler steps before backward."""

import torch
from torch import nn

model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
opt.step(model(torch.rand(1, 2)).sum())
#! opt.step()
