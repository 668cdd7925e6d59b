"""Integers have no mean."""

import torch

x = torch.tensor([1, 2, 3])
m = x.mean()
#! m = x.float().mean()
