"""The bias of a layer without bias is initialized."""

import torch
from torch import nn

layer = nn.Linear(3, 2, bias=False)
nn.init.zeros_(layer.bias)
#! if layer.bias is not None: nn.init.zeros_(layer.bias)
