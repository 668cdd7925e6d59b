"""An LSTM's pair goes into the next module of a user's own block.

Module: norm
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        h = self.norm(self.rnn(x))
        #! h = self.norm(self.rnn(x)[0])
        return self.fc(h[:, -1])


Net()(torch.rand(3, 5, 4))
