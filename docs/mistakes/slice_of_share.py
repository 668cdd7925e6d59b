"""A tensor is indexed with a list of tensors of different lengths / floats."""

import torch

x = torch.rand(10, 3)
perm = torch.randperm(10)
train = x[perm[: 0.8 * 10]]
#! train = x[perm[: int(0.8 * 10)]]
