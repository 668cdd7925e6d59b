"""An index is a float."""

import torch

x = torch.zeros(10)
i = torch.tensor([1.0, 2.0])
y = x[i]
#! y = x[i.long()]
