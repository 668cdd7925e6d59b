"""LambdaLR is given a number."""

import torch
from torch import nn

opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.LambdaLR(opt, 0.95)
#! sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.95 ** epoch)
