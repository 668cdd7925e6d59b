"""A comparison of tensors is a tensor."""

import torch

a, b = torch.zeros(3), torch.zeros(3)
if a == b:
    #! if (a == b).all():
    pass
