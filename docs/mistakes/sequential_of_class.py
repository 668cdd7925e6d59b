"""A class is given instead of a module."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 3), nn.ReLU)
#! model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
