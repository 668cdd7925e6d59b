"""A loss per sample is not a number."""

import torch

w = torch.ones(3, requires_grad=True)
loss = (w - 2) ** 2
loss.backward()
#! loss.mean().backward()
