"""xavier of a bias."""

import torch
from torch import nn

layer = nn.Linear(3, 2)
nn.init.xavier_uniform_(layer.bias)
#! nn.init.zeros_(layer.bias)
