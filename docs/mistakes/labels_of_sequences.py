"""The predictions are flat, the labels are not."""

import torch
from torch import nn

labels = torch.zeros(2, 5, dtype=torch.long)
nn.functional.cross_entropy(torch.zeros(10, 4), labels)
#! nn.functional.cross_entropy(torch.zeros(10, 4), labels.flatten())
