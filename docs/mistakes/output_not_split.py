"""The encoder's output is not split.

Module: VAE
"""

import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, z=4):
        super().__init__()
        self.enc = nn.Linear(10, 2 * z)
        self.dec = nn.Linear(z, 10)

    def forward(self, x):
        mu, logvar = self.enc(x)
        #! mu, logvar = self.enc(x).chunk(2, dim=-1)
        return self.dec(mu + torch.randn_like(mu) * (logvar / 2).exp())


VAE()(torch.rand(6, 10))
