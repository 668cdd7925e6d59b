"""The saved weights have the prefix of `DataParallel`."""

import torch
from torch import nn

model = nn.Linear(3, 1)
state = {f"module.{name}": value for name, value in nn.Linear(3, 1).state_dict().items()}
model.load_state_dict(state)
#! model.load_state_dict({key.removeprefix("module."): value for key, value in state.items()})
