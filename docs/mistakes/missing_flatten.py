"""Images go into a linear layer without being flattened.

Module: fc
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        return self.fc(x)
        #! return self.fc(x.flatten(1))


Net()(torch.zeros(4, 1, 28, 28))
