"""~ of a float mask."""

import torch

mask = (torch.rand(5) > 0.5).float()
x = torch.rand(5) * ~mask
#! x = torch.rand(5) * (1 - mask)
