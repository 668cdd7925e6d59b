"""A module keeps results with their graphs in a dictionary."""

import copy

import torch
from torch import nn


class Prototypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 2)
        self.kept = {}

    def remember(self, name, x):
        self.kept[name] = self.encoder(x).mean(0)
        #! self.kept[name] = self.encoder(x).mean(0).detach()


model = Prototypes()
model.remember("cat", torch.zeros(3, 4))
copy.deepcopy(model)
