"""The model was converted to float64, the input was not.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 2)).double()
x = torch.zeros(4, 3)
model(x)
#! model(x.double())
