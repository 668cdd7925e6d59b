"""A block is computed with checkpointing.

Module: 0
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
#! block = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
checkpoint(block, torch.zeros(2, 5, requires_grad=True), use_reentrant=False)
