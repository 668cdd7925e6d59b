"""The state of an optimizer is of more parameters."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
saved = torch.optim.SGD(model.parameters(), lr=0.1).state_dict()
opt = torch.optim.SGD(model[1].parameters(), lr=0.1)
#! opt = torch.optim.SGD(model.parameters(), lr=0.1)
opt.load_state_dict(saved)
