"""The index of gather is of floats."""

import torch

x, index = torch.zeros(2, 3), torch.zeros(2, 1)
x.gather(1, index)
#! x.gather(1, index.long())
