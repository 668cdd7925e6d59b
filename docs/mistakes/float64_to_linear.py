"""NumPy's numbers are float64, the layer's are float32.

Module: 0
"""

import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 2))
data = torch.from_numpy(np.zeros((4, 3)))
model(data)
#! model(data.float())
