"""A probability is a percentage."""

import torch
from torch import nn

layer = nn.Dropout(50)
#! layer = nn.Dropout(0.5)
