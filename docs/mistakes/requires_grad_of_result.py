"""The flag of a result cannot be changed."""

import torch

w = torch.ones(3, requires_grad=True)
y = w * 2
y.requires_grad = False
#! y = y.detach()
