"""classes of a subset are read."""

import torch
from torch.utils.data import Subset, TensorDataset


class Named(TensorDataset):
    classes = ["a", "b"]


sub = Subset(Named(torch.rand(4, 2)), [0, 1])
print(sub.classes)
#! print(sub.dataset.classes)
