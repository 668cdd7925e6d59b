"""A sequence has its features last; a convolution wants them as channels.

Module: conv
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(16, 32, 3)

    def forward(self, x):
        return self.conv(x)
        #! return self.conv(x.transpose(1, 2))


Net()(torch.zeros(4, 50, 16))
