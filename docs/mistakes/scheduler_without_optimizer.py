"""The scheduler gets the optimizer's class."""

import torch
from torch import nn

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(step_size=10, gamma=0.1)
#! sched = torch.optim.lr_scheduler.StepLR(opt, step_size=10, gamma=0.1)
