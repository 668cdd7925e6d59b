"""The assigned values do not fit."""

import torch

x = torch.zeros(4, 3)
x[0] = torch.zeros(4)
#: x[:, 0] = torch.zeros(4)
