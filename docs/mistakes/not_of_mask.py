"""not of a mask."""

import torch

mask = torch.rand(5) > 0.5
x = torch.rand(5)[not mask]
#! x = torch.rand(5)[~mask]
