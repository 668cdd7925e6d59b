"""The features of a table have another number than the layer says.

Module: Linear
"""

import torch
from torch import nn

layer = nn.Linear(8, 1)
#! layer = nn.Linear(10, 1)
layer(torch.zeros(32, 10))
