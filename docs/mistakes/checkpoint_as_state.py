"""A checkpoint contains the weights among others."""

import torch
from torch import nn

model = nn.Linear(3, 1)
checkpoint = {"epoch": 3, "state_dict": model.state_dict()}
model.load_state_dict(checkpoint)
#! model.load_state_dict(checkpoint["state_dict"])
