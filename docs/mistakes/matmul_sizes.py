"""The factors of a product do not fit."""

import torch

a = torch.zeros(3, 4)
b = torch.zeros(3, 5)
c = a @ b
#! c = a.transpose(-2, -1) @ b
