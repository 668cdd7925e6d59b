"""A decoder's output is larger than its input."""

import torch
from torch import nn
import torch.nn.functional as F


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.dec = nn.ConvTranspose2d(4, 1, 3, stride=2, padding=1)
        #! self.dec = nn.ConvTranspose2d(4, 1, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x):
        return self.dec(F.relu(self.enc(x)))


x = torch.rand(2, 1, 28, 28)
loss = F.mse_loss(AE()(x), x)
