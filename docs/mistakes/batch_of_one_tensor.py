"""A batch of a data set of one tensor is a list.

Module: Linear
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(3, 1)
loader = DataLoader(TensorDataset(torch.rand(6, 3)), batch_size=2)
for x in loader:
    y = model(x)
    #! y = model(x[0])
