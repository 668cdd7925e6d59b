"""A method of an optimizer is misspelt."""

import torch
from torch import nn

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.zerograd()
#! optimizer.zero_grad()
