"""The learning rate has another name."""

import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), learning_rate=0.1)
#! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
