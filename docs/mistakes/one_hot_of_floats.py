"""`one_hot` wants integers."""

import torch
import torch.nn.functional as F

y = torch.tensor([0.0, 1.0])
z = F.one_hot(y, 2)
#! z = F.one_hot(y.long(), 2)
