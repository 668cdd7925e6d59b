"""The convolution is for RGB images, the images are gray.

Module: conv
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        #! self.conv = nn.Conv2d(1, 8, 3)

    def forward(self, x):
        return self.conv(x)


Net()(torch.zeros(2, 1, 28, 28))
