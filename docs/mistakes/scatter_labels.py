"""One-hot labels by scatter_ from labels without a column."""

import torch

labels = torch.tensor([0, 2, 1])
onehot = torch.zeros(3, 3).scatter_(1, labels, 1.0)
#! onehot = torch.zeros(3, 3).scatter_(1, labels.unsqueeze(1), 1.0)
