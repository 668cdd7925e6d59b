"""An initializer of a module."""

import torch
from torch import nn

layer = nn.Linear(3, 2)
nn.init.kaiming_normal_(layer)
#! nn.init.kaiming_normal_(layer.weight)
