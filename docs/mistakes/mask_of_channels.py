"""A vector of channels is multiplied with images."""

import torch

scale = torch.ones(3)
torch.zeros(2, 3, 4, 5) * scale
#! torch.zeros(2, 3, 4, 5) * scale[:, None, None]
