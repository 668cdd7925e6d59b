"""A backward hook on a layer whose result the next layer writes into.

Module: 1
"""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
#! net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
gradients = []
net[0].register_full_backward_hook(lambda module, grad_input, grad_output: gradients.append(grad_output))
net(torch.rand(2, 3)).sum().backward()
