"""The graph has been freed by the first backward."""

import torch

w = torch.ones(3, requires_grad=True)
loss = (w * w).sum()
loss.backward()
#! loss.backward(retain_graph=True)
loss.backward()
