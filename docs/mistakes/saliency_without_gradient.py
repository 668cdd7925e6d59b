"""x.grad is None, as x does not require a gradient."""

import torch
from torch import nn

model = nn.Linear(4, 2)
x = torch.rand(1, 4)
#! x = torch.rand(1, 4).requires_grad_()
score = model(x).max()
score.backward()
print(x.grad.abs())
