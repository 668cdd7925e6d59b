"""The keys and values of attention have another width than the queries.

Module: MultiheadAttention
"""

import torch
from torch import nn

attention = nn.MultiheadAttention(16, 2, batch_first=True)
#! attention = nn.MultiheadAttention(16, 2, kdim=24, vdim=24, batch_first=True)
image = torch.zeros(2, 9, 24)
attention(torch.zeros(2, 5, 16), image, image)
