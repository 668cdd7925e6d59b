"""All parameters are frozen."""

import torch
from torch import nn

model = nn.Linear(3, 1)
for p in model.parameters():
    p.requires_grad = False
    #! p.requires_grad = True
loss = model(torch.zeros(4, 3)).mean()
loss.backward()
