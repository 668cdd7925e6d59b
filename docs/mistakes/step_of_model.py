"""step is called on the model."""

import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(1, 3)).sum().backward()
model.step()
#! opt.step()
