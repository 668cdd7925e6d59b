"""An element of a value that backward needs is assigned."""

import torch

x = torch.ones(3, requires_grad=True)
y = torch.sigmoid(x)
y[0] = 0
#! y = y.clone(); y[0] = 0
y.sum().backward()
