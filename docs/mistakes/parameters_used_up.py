"""An iterator of parameters has been used up."""

import torch
from torch import nn

model = nn.Linear(4, 2)
params = filter(lambda p: p.requires_grad, model.parameters())
#! params = list(filter(lambda p: p.requires_grad, model.parameters()))
count = sum(p.numel() for p in params)
torch.optim.SGD(params, lr=0.1)
