"""model.device."""

import torch
from torch import nn

model = nn.Linear(3, 2)
x = torch.rand(2, 3).to(model.device)
#! x = torch.rand(2, 3).to(next(model.parameters()).device)
