"""A parameter in two groups."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
opt = torch.optim.SGD([{"params": model.parameters(), "lr": 0.1}, {"params": model[1].parameters(), "lr": 0.01}], lr=0.1)
#! opt = torch.optim.SGD([{"params": [p for name, p in model.named_parameters() if not name.startswith("1.")], "lr": 0.1}, {"params": model[1].parameters(), "lr": 0.01}], lr=0.1)
