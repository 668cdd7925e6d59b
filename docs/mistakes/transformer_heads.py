"""The width of attention is not divisible by its heads."""

import torch
from torch import nn

nn.MultiheadAttention(100, 8)
#! nn.MultiheadAttention(104, 8)
