"""A part of the graph is made once, before the loop."""

import torch

w = torch.ones(3, requires_grad=True)
scale = w.exp()
for _ in range(2):
    loss = (scale * 2).sum()
    #! scale = w.exp(); loss = (scale * 2).sum()
    loss.backward()
