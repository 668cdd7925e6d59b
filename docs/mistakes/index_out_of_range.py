"""An index is too large."""

import torch

x = torch.zeros(3)
y = x[3]
#! y = x[2]
