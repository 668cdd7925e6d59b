"""An attribute of a wrapped model."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)

    def loss(self, x):
        return self(x).sum()


model = nn.DataParallel(Net())
model.loss(torch.rand(2, 3))
#! model.module.loss(torch.rand(2, 3))
