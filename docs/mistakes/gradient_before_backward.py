"""The gradient is set to zero before the first backward."""

import torch

w = torch.rand(3, requires_grad=True)
for _ in range(2):
    w.grad.zero_()
    #! if w.grad is not None: w.grad.zero_()
    (w ** 2).sum().backward()
