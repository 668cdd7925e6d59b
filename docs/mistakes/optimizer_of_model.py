"""The optimizer gets the model."""

import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model)
#! optimizer = torch.optim.Adam(model.parameters())
