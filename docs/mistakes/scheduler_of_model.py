"""A scheduler gets the model."""

import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(model, step_size=10)
#! scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
