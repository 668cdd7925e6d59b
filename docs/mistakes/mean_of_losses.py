"""NumPy is given a list of losses with their graphs."""

import numpy as np
import torch
from torch import nn

model = nn.Linear(2, 1)
losses = [model(torch.ones(3, 2)).mean() for step in range(3)]
print(np.mean(losses))
#! print(np.mean([each.item() for each in losses]))
