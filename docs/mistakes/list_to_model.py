"""A list of numbers goes into a model.

Module: 0
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 2))
data = [1.0, 2.0, 3.0]
model(data)
#! model(torch.tensor(data))
