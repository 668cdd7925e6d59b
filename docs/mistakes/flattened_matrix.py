"""flatten(2) of a matrix."""

import torch

x = torch.rand(3, 4).flatten(2)
#! x = torch.rand(3, 4).flatten(1)
