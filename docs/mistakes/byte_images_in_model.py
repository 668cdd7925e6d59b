"""Images of bytes.

Module: features.0
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())

    def forward(self, x):
        return self.features(x)
        #! return self.features(x.float() / 255)


imgs = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
Net()(imgs)
