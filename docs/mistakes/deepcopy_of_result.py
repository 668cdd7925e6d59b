"""Only leaves can be copied deeply."""

import copy

import torch

w = torch.ones(3, requires_grad=True)
y = w * 2
z = copy.deepcopy(y)
#! z = copy.deepcopy(y.detach())
