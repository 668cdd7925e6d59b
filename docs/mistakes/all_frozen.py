"""All parameters are frozen."""

import torch
from torch import nn

model = nn.Linear(3, 1)
model.requires_grad_(False)
#! model.requires_grad_(True)
loss = model(torch.zeros(4, 3)).mean()
loss.backward()
