"""A method is called on parameters()."""

import torch
from torch import nn

model = nn.Linear(3, 2)
model.parameters().requires_grad_(False)
#! model.requires_grad_(False)
