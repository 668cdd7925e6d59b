"""A decoder of two layers gets the state of one.

Module: GRU
"""

import torch
from torch import nn

encoder, decoder = nn.GRU(4, 8), nn.GRU(4, 8, num_layers=2)
_, state = encoder(torch.zeros(5, 3, 4))
decoder(torch.zeros(6, 3, 4), state)
#! decoder(torch.zeros(6, 3, 4), state.repeat(2, 1, 1))
