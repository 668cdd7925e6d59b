"""The gradient that backward starts from has another shape."""

import torch

w = torch.ones(3, requires_grad=True)
y = w * 2
y.backward(torch.ones(2))
#! y.backward(torch.ones_like(y))
