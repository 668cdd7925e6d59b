"""Only dimensions of size 1 are expanded."""

import torch

x = torch.zeros(3)
y = x.expand(3, 4)
#! y = x.unsqueeze(1).expand(3, 4)
