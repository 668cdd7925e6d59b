"""A method is misspelt."""

import torch

x = torch.zeros(3)
y = x.unsqeeze(0)
#! y = x.unsqueeze(0)
