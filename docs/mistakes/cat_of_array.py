"""An array among tensors."""

import numpy as np
import torch

a, b = torch.zeros(2, 3), np.zeros((2, 3), dtype=np.float32)
c = torch.cat([a, b])
#! c = torch.cat([a, torch.from_numpy(b)])
