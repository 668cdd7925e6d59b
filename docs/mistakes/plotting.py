"""matplotlib and NumPy want an array."""

import numpy as np
import torch

w = torch.ones(3, requires_grad=True)
np.asarray(w * 2)
#! np.asarray((w * 2).detach())
