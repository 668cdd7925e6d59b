"""The gradient of a result is not kept."""

import torch

x = torch.ones(3, requires_grad=True)
y = x * 2
#! y = x * 2; y.retain_grad()
y.sum().backward()
print(y.grad.sum())
