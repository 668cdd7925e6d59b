"""A function of one sample is mapped over a batch.

Module: Linear
"""

import torch
from torch import nn

layer = nn.Linear(4, 2)
#! layer = nn.Linear(3, 2)
torch.func.vmap(layer)(torch.zeros(8, 3))
