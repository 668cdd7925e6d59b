"""Two decoder maps are added whose sizes differ by one.

Module: FPN
"""

import torch
from torch import nn


class FPN(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, low, high):
        return self.up(low) + high
        #! return nn.functional.interpolate(self.up(low), size=high.shape[-2:]) + high


FPN()(torch.rand(1, 4, 5, 5), torch.rand(1, 4, 9, 9))
