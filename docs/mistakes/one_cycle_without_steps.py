"""OneCycleLR without total_steps."""

import torch
from torch import nn

net, epochs, loader = nn.Linear(2, 1), 5, range(10)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1)
#! sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=epochs * len(loader))
