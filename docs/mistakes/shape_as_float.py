"""A size is a float."""

import torch

n = 10
x = torch.zeros(n / 2)
#! x = torch.zeros(int(n / 2))
