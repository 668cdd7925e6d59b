"""The targets are images, the predictions are flat."""

import torch
from torch import nn

x = torch.rand(2, 1, 4, 4)
decoder = nn.Sequential(nn.Linear(3, 16), nn.Sigmoid())
nn.functional.binary_cross_entropy(decoder(torch.zeros(2, 3)), x)
#! nn.functional.binary_cross_entropy(decoder(torch.zeros(2, 3)), x.flatten(1))
