"""A tensor of the graph is converted to an array."""

import torch

w = torch.ones(3, requires_grad=True)
y = w * 2
array = y.numpy()
#! array = y.detach().numpy()
