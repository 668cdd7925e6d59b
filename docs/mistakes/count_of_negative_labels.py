"""histc of ints / bincount with negative values."""

import torch

y = torch.tensor([-1, 0, 1])
n = torch.bincount(y)
#! n = torch.bincount(y[y >= 0])
