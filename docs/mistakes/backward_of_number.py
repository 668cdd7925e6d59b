"""The loss is a Python number."""

import torch
from torch import nn

model = nn.Linear(3, 1)
loss = model(torch.zeros(4, 3)).mean().item()
#! loss = model(torch.zeros(4, 3)).mean()
loss.backward()
