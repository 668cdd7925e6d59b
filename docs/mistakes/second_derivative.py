"""A second derivative without create_graph."""

import torch

x = torch.rand(4, requires_grad=True)
y = (x ** 3).sum()
(g,) = torch.autograd.grad(y, x)
#! g, = torch.autograd.grad(y, x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x)
