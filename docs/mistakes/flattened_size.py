"""Maps are flattened to a size that they do not have."""

import torch
from torch import nn

x = nn.Conv2d(1, 2, 3)(torch.zeros(3, 1, 8, 8))
x.view(-1, 2 * 8 * 8)
#! x.flatten(1)
