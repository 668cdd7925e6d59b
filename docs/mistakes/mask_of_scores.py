"""A padding mask lacks the dimensions of heads and queries."""

import torch

scores = torch.zeros(2, 4, 5, 5)
mask = torch.zeros(2, 5, dtype=torch.bool)
scores = scores.masked_fill(mask, -1e9)
#! scores = scores.masked_fill(mask[:, None, None, :], -1000000000.0)
