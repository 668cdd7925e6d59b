"""A model is called with other parameters.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 2))
params = {name: value.detach() for name, value in model.named_parameters()}
x = torch.zeros(8, 3)
#! x = torch.zeros(8, 4)
torch.func.functional_call(model, params, (x,))
