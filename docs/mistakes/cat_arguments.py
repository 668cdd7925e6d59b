"""The tensors to join are not in a list."""

import torch

x, y = torch.zeros(2), torch.zeros(2)
z = torch.cat(x, y)
#! z = torch.cat((x, y))
