"""and of two masks."""

import torch

x = torch.rand(5)
y = x[(x > 0.1) and (x < 0.9)]
#! y = x[(x > 0.1) & (x < 0.9)]
