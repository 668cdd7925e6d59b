"""interpolate with a size of one number for each dimension too many."""

import torch
import torch.nn.functional as F

x = torch.rand(1, 3, 8, 8)
y = F.interpolate(x, size=(3, 16, 16))
#! y = F.interpolate(x, size=(16, 16))
