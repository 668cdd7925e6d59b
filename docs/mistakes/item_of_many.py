"""`item` is for one element."""

import torch

x = torch.zeros(3)
x.item()
#! x.tolist()
