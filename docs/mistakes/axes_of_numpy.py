"""An argument has a name of another library."""

import torch

x = torch.zeros(4, 3)
y = x.sum(axes=1)
#! y = x.sum(dim=1)
