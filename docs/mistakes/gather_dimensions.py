"""The index of `gather` needs as many dimensions as the input."""

import torch

x = torch.zeros(4, 3)
labels = torch.tensor([0, 1, 2, 0])
y = x.gather(1, labels)
#! y = x.gather(1, labels.unsqueeze(1)).squeeze(1)
