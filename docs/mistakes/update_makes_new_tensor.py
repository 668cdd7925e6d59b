"""The update makes a new tensor, so that its gradient is None."""

import torch

w = torch.rand(3, requires_grad=True)
for _ in range(2):
    (w ** 2).sum().backward()
    w = w - 0.1 * w.grad
    #! with torch.no_grad(): w -= 0.1 * w.grad
