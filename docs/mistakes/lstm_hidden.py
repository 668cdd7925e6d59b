"""The initial state is for another batch size.

Module: LSTM
"""

import torch
from torch import nn

lstm = nn.LSTM(8, 16, batch_first=True)
h, c = torch.zeros(1, 4, 16), torch.zeros(1, 4, 16)
#! h, c = torch.zeros(1, 3, 16), torch.zeros(1, 3, 16)
lstm(torch.zeros(3, 5, 8), (h, c))
