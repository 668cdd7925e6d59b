"""The prediction was detached before the loss."""

import torch
from torch import nn

model = nn.Linear(3, 1)
pred = model(torch.zeros(4, 3)).detach()
#! pred = model(torch.zeros(4, 3))
loss = pred.mean()
loss.backward()
