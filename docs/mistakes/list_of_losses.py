"""The losses of a list are made numbers."""

import torch

w = torch.ones(2, requires_grad=True)
losses = [w.sum(), (w * w).sum()]
total = torch.tensor(losses).mean()
#! total = torch.stack(losses).mean()
total.backward()
