"""Discriminator outputs (N, 1, 1, 1) against labels (N,).

Module: BCEWithLogitsLoss
"""

import torch
from torch import nn

D = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(), nn.Conv2d(4, 1, 4))
out = D(torch.rand(5, 1, 8, 8))
loss = nn.BCEWithLogitsLoss()(out, torch.ones(5))
#! loss = nn.BCEWithLogitsLoss()(out.flatten(), torch.ones(5))
