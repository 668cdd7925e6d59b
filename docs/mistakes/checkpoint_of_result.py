"""checkpoint is given the result instead of the function."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

net = nn.Linear(3, 2)
x = torch.rand(4, 3, requires_grad=True)
y = checkpoint(net(x), use_reentrant=False)
#! y = checkpoint(net, x, use_reentrant=False)
