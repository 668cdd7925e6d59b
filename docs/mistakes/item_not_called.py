"""item is not called in a sum."""

import torch

total = 0.0
for loss in (torch.rand(()), torch.rand(())):
    total += loss.item
    #! total += loss.item()
