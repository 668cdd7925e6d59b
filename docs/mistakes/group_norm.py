"""The channels are not divisible by the number of groups."""

import torch
from torch import nn

nn.GroupNorm(4, 10)
#! nn.GroupNorm(2, 10)
