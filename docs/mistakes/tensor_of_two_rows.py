"""arange with a tensor dtype."""

import torch

x = torch.tensor([1, 2], [3, 4])
#! x = torch.tensor([[1, 2], [3, 4]])
