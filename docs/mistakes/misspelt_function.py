"""A function is misspelt."""

import torch

x = torch.zeros(3)
y = torch.sigmoud(x)
#! y = torch.sigmoid(x)
