"""A forward hook with two arguments.

Module: Linear
"""

import torch
from torch import nn

net = nn.Linear(3, 2)
feats = []


def hook(module, output):
    #! def hook(module, input, output):
    feats.append(output)


net.register_forward_hook(hook)
net(torch.rand(1, 3))
