"""Integers are divided in place."""

import torch

x = torch.tensor([1, 2, 3])
x = x.div_(2)
#! x = x.div(2)
