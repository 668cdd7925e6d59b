"""A layer's name is misspelt.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 2)

    def forward(self, x):
        return self.hiden(x)
        #! return self.hidden(x)


Net()(torch.zeros(1, 3))
