"""A layer is misspelt."""

import torch
from torch import nn

layer = nn.Conv2D(3, 8, 3)
#! layer = nn.Conv2d(3, 8, 3)
