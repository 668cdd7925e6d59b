"""The number of steps of a schedule is the number of epochs."""

import torch
from torch import nn

opt = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
epochs, batches = 3, [0, 1, 2, 3]
schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=epochs)
#! schedule = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=epochs * len(batches))
for epoch in range(epochs):
    for batch in batches:
        opt.step()
        schedule.step()
