"""A tensor made from a number has no graph."""

import torch
from torch import nn

model = nn.Linear(3, 1)
loss = model(torch.zeros(4, 3)).mean()
total = torch.tensor(loss.item())
#! total = loss
total.backward()
