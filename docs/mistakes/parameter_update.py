"""A step of gradient descent by hand is recorded."""

import torch

w = torch.ones(3, requires_grad=True)
(w * w).sum().backward()
w -= 0.1 * w.grad
#! with torch.no_grad(): w -= 0.1 * w.grad
