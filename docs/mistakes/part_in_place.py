"""An output of unbind is changed in place."""

import torch

x = torch.rand(3, 4, requires_grad=True)
a, b, c = (x * 2).unbind(0)
a += 1
#! a = a + 1
(a + b + c).sum().backward()
