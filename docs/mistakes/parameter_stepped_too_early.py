"""The optimizer changes the weights between forward and backward."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
a = model(torch.ones(2, 3)).mean()
b = model(torch.zeros(2, 3)).mean()
a.backward(retain_graph=True)
optimizer.step()
#! optimizer.step(); b = model(torch.zeros(2, 3)).mean()
b.backward()
