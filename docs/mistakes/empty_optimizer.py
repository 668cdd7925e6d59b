"""Layers in a plain list are no submodules."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
        #! self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])


torch.optim.SGD(Net().parameters(), lr=0.1)
