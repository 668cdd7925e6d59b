"""Integers have no gradient."""

import torch

x = torch.tensor([1, 2, 3], requires_grad=True)
#! x = torch.tensor([1, 2, 3], requires_grad=True, dtype=torch.float32)
