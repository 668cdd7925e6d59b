"""The scheduler is stepped with an argument too many."""

import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, 10)
#! sched = torch.optim.lr_scheduler.MultiStepLR(opt, [10])
