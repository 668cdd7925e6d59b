"""backward is called on the criterion."""

import torch
from torch import nn

model, criterion = nn.Linear(3, 2), nn.MSELoss()
loss = criterion(model(torch.rand(1, 3)), torch.rand(1, 2))
criterion.backward()
#! loss.backward()
