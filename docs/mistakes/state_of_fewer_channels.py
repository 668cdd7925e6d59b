"""The weights of a convolution were saved with another number of channels."""

import torch
from torch import nn

state = nn.Conv2d(3, 8, 3, padding=1).state_dict()
model = nn.Conv2d(3, 16, 3, padding=1)
#! model = nn.Conv2d(3, 8, 3, padding=1)
model.load_state_dict(state)
