"""The optimizer gets one tensor rather than a list."""

import torch

w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.Adam(w)
#! optimizer = torch.optim.Adam([w])
