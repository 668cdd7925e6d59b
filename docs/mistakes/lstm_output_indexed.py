"""The result of an LSTM is indexed like its output.

Module: Net
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        h = self.lstm(x)
        #! h, _ = self.lstm(x)
        return self.head(h[:, -1])


Net()(torch.zeros(3, 5, 8))
