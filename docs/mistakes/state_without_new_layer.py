"""The state of a model lacks the layer that was added."""

import torch
from torch import nn

old = nn.Sequential(nn.Linear(4, 4))
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
model.load_state_dict(old.state_dict())
#! model.load_state_dict(old.state_dict(), strict=False)
