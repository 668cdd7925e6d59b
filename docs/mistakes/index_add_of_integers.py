"""index_add_ with an int source."""

import torch

counts = torch.zeros(4)
idx = torch.tensor([0, 1, 1])
ones = torch.ones(3, dtype=torch.long)
counts.index_add_(0, idx, ones)
#! counts.index_add_(0, idx, ones.to(counts.dtype))
