"""clip_grad_norm_ of a list of named parameters."""

import torch
from torch import nn

net = nn.Linear(3, 2)
net(torch.rand(1, 3)).sum().backward()
nn.utils.clip_grad_norm_(net.named_parameters(), 1.0)
#! nn.utils.clip_grad_norm_(net.parameters(), 1.0)
