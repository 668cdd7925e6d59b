"""& of float masks."""

import torch

a, b = torch.ones(3), torch.ones(3)
c = a & b
#! c = a.bool() & b.bool()
