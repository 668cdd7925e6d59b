"""A loss is computed by numpy functions."""

import numpy as np
import torch
from torch import nn

out = nn.Linear(3, 1)(torch.rand(2, 3))
loss = np.sqrt(out).mean()
#! loss = torch.sqrt(out).mean()
loss.backward()
