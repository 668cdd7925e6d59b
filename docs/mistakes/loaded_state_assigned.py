"""The result of load_state_dict is taken for the model."""

import torch
from torch import nn

state = nn.Linear(3, 2).state_dict()
model = nn.Linear(3, 2)
model = model.load_state_dict(state)
#! model.load_state_dict(state)
model(torch.rand(2, 3))
