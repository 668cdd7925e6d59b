"""Edges are counted from one."""

import torch

x = torch.rand(5, 3)
edges = torch.tensor([[1, 2, 5], [2, 3, 4]])
messages = x[edges[0]]
#! messages = x[edges[0] - 1]
