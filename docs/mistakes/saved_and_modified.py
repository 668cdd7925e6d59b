"""A value that backward needs is changed in place."""

import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
#! y = y + 1
y.sum().backward()
