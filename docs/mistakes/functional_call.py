"""A model is called with other parameters.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 2))
#! model = nn.Sequential(nn.Linear(3, 2))
params = {name: value.detach() for name, value in model.named_parameters()}
x = torch.zeros(8, 3)
torch.func.functional_call(model, params, (x,))
