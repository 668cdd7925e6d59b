"""An LSTM returns its output and its states.

Module: fc
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        out = self.lstm(x)
        #! out, _ = self.lstm(x)
        return self.fc(out)


Net()(torch.zeros(3, 5, 8))
