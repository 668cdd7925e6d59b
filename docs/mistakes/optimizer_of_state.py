"""named_parameters are filtered without their names."""

import torch
from torch import nn

model = nn.Linear(4, 2)
params = [p for p in model.named_parameters() if p[1].requires_grad]
opt = torch.optim.SGD(model.state_dict(), lr=0.1)
#! opt = torch.optim.SGD(model.parameters(), lr=0.1)
