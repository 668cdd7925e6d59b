"""Booleans cannot be subtracted."""

import torch

mask = torch.tensor([True, False])
inverse = 1 - mask
#! inverse = ~mask
