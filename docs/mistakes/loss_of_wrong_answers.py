"""The loss is a count of right answers."""

import torch
from torch import nn

model = nn.Linear(3, 2)
y = torch.tensor([0, 1, 1])
out = model(torch.rand(3, 3))
loss = (out.argmax(1) != y).float().mean()
#! loss = nn.functional.cross_entropy(out, y)
loss.backward()
