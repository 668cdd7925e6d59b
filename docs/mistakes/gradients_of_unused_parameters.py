"""The gradient of a parameter that was not used."""

import torch
from torch import nn

model = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)})
model["a"](torch.rand(1, 4)).sum().backward()
norm = sum(p.grad.norm() for p in model.parameters())
#! norm = sum(p.grad.norm() for p in model.parameters() if p.grad is not None)
