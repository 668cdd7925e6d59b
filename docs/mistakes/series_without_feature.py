"""A univariate series without feature dimension.

Module: lstm
"""

import torch
from torch import nn


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        y, _ = self.lstm(x)
        #! y, _ = self.lstm(x.unsqueeze(-1))
        return self.out(y[:, -1])


Forecast()(torch.rand(8, 30))
