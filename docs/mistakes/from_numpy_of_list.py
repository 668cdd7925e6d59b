"""`from_numpy` wants an array."""

import torch

x = torch.from_numpy([1.0, 2.0])
#! x = torch.tensor([1.0, 2.0])
