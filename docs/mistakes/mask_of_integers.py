"""A mask is of integers."""

import torch

scores, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.long)
scores.masked_fill(mask, -100.0)
#! scores.masked_fill(mask.bool(), -100.0)
