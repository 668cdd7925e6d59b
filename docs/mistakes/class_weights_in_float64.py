"""Class weights from numpy are float64.

Module: CrossEntropyLoss
"""

import numpy as np
import torch
from torch import nn

w = torch.from_numpy(np.array([1.0, 2.0, 1.0]))
crit = nn.CrossEntropyLoss(weight=w)
#! crit = nn.CrossEntropyLoss(weight=w.float())
loss = crit(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))
