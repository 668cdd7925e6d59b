"""The forward pass ran inside of `no_grad`."""

import torch
from torch import nn

model = nn.Linear(3, 1)
with torch.no_grad():
    #: with torch.enable_grad():
    loss = model(torch.ones(4, 3)).mean()
loss.backward()
