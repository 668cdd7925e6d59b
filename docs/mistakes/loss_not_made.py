"""The criterion is a class that was not made."""

import torch
from torch import nn

criterion = nn.CrossEntropyLoss
#! criterion = nn.CrossEntropyLoss()
model = nn.Linear(3, 2)
loss = criterion(model(torch.rand(4, 3)), torch.tensor([0, 1, 1, 0]))
loss.backward()
