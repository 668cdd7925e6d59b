"""fold with the wrong number of blocks."""

import torch
import torch.nn.functional as F

x = torch.rand(1, 3, 8, 8)
cols = F.unfold(x, 4, stride=4)
y = F.fold(cols, (8, 8), 4)
#! y = F.fold(cols, (8, 8), 4, stride=4)
