"""The sum of the losses of all steps is what backward starts from."""

import torch

w = torch.ones(3, requires_grad=True)
total = 0
for _ in range(2):
    loss = (w * w).sum()
    total += loss
    total.backward()
    #! loss.backward()
