"""A compiled model says where it was wrong as well.

Module: 1
"""

import torch
from torch import nn

model = torch.compile(nn.Sequential(nn.ReLU(), nn.Linear(4, 2)), backend="eager")
#! model = torch.compile(nn.Sequential(nn.ReLU(), nn.Linear(5, 2)), backend="eager")
model(torch.zeros(3, 5))
