"""`forward` returns nothing."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        x = self.fc(x)
        #! return self.fc(x)


net = Net()
loss = net(torch.zeros(1, 3)).sum()
