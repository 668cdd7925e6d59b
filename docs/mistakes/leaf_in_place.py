"""A parameter is changed in place while a graph is recorded."""

import torch

w = torch.ones(3, requires_grad=True)
w += 1
#! with torch.no_grad(): w += 1
