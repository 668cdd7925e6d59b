"""max over a dimension returns values and indices."""

import torch

x = torch.rand(4, 6)
shifted = x - x.max(dim=1, keepdim=True)
#! shifted = x - x.max(dim=1, keepdim=True).values
