"""A NumPy array goes into a model.

Module: 0
"""

import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 2))
data = np.zeros((4, 3), dtype=np.float32)
model(data)
#! model(torch.from_numpy(data))
