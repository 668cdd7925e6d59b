"""zip of a model's parameters with names."""

import torch
from torch import nn

net = nn.Linear(3, 1)
for name, p in net.parameters():
    #! for name, p in net.named_parameters():
    print(name, p.shape)
