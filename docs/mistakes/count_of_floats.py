"""bincount of floats."""

import torch

y = torch.tensor([0.0, 1.0, 1.0])
n = torch.bincount(y)
#! n = torch.bincount(y.long())
