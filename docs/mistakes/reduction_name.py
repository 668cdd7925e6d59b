"""The reduction of a loss has a wrong name.

Module: MSELoss
"""

import torch
from torch import nn

loss_fn = nn.MSELoss(reduction="average")
#! loss_fn = nn.MSELoss(reduction="mean")
loss_fn(torch.zeros(3), torch.zeros(3))
