"""The saved weights are of a model with another size."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 2))
#! model = nn.Sequential(nn.Linear(3, 2))
model.load_state_dict(nn.Sequential(nn.Linear(3, 2)).state_dict())
