"""`Sequential` takes modules, not a list."""

import torch
from torch import nn

layers = [nn.Linear(3, 3), nn.ReLU()]
model = nn.Sequential(layers)
#! model = nn.Sequential(*layers)
