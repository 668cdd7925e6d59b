"""The class of the model is called with data."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(x)


net = Net
#! net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
