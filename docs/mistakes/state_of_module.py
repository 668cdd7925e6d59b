"""`load_state_dict` gets the model itself."""

import torch
from torch import nn

model, other = nn.Linear(3, 1), nn.Linear(3, 1)
model.load_state_dict(other)
#! model.load_state_dict(other.state_dict())
