"""A dtype of numpy is given to a tensor."""

import numpy as np
import torch

x = torch.zeros(3, dtype=np.float32)
#! x = torch.zeros(3, dtype=torch.float32)
