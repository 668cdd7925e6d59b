"""The optimizer gets a tensor that is not a leaf."""

import torch

w = torch.randn(3, requires_grad=True) * 0.1
#! w = (torch.randn(3) * 0.1).requires_grad_()
optimizer = torch.optim.Adam([w])
