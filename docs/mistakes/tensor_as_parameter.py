"""A tensor is assigned to the name of a parameter."""

import torch
from torch import nn

layer = nn.Linear(3, 1)
layer.weight = torch.ones(1, 3)
#! layer.weight = nn.Parameter(torch.ones(1, 3))
