"""A padding mode of another name."""

import torch
from torch import nn

net = nn.Conv2d(3, 16, 3, padding=1, padding_mode="reflection")
#! net = nn.Conv2d(3, 16, 3, padding=1, padding_mode="reflect")
