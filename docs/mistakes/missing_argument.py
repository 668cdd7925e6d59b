"""A layer lacks an argument."""

import torch
from torch import nn

layer = nn.Conv2d(3, 8)
#! layer = nn.Conv2d(3, 8, kernel_size=3)
