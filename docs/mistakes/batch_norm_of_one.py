"""Batch norm cannot train with one sample.

Module: 1
"""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
model(torch.zeros(1, 4))
#! model.eval()(torch.zeros(1, 4))
