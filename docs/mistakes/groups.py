"""The channels are not divisible by the groups."""

import torch
from torch import nn

nn.Conv2d(6, 8, 3, groups=4)
#! nn.Conv2d(6, 8, 3, groups=2)
