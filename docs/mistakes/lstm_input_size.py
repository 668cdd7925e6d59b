"""The LSTM's input has another number of features.

Module: rnn
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(10, 20, batch_first=True)
        #! self.rnn = nn.LSTM(12, 20, batch_first=True)

    def forward(self, x):
        out, _ = self.rnn(x)
        return out


Net()(torch.zeros(3, 5, 12))
