"""The padding of a pooling is larger than half of the window.

Module: MaxPool2d
"""

import torch
from torch import nn

net = nn.MaxPool2d(2, padding=2)
#! net = nn.MaxPool2d(2, stride=2, padding=1)
net(torch.rand(1, 4, 8, 8))
