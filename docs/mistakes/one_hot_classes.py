"""`one_hot` has too few classes."""

import torch
import torch.nn.functional as F

y = torch.tensor([0, 1, 3])
z = F.one_hot(y, 3)
#! z = F.one_hot(y, 4)
