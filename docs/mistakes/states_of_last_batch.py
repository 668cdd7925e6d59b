"""The states of a layer are those of a larger batch.

Module: lstm
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 8, batch_first=True)
        self.hidden = (torch.zeros(1, 16, 8), torch.zeros(1, 16, 8))

    def forward(self, x):
        out, self.hidden = self.lstm(x, self.hidden)
        #! out, self.hidden = self.lstm(x, (torch.zeros(1, x.shape[0], 8), torch.zeros(1, x.shape[0], 8)))
        return out


net = Net()
net(torch.zeros(4, 5, 3))
