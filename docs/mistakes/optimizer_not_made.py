"""The optimizer's class is not called."""

import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.Adam
#! opt = torch.optim.Adam(model.parameters())
opt.zero_grad()
