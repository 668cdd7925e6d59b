"""range of a tensor of floats."""

import torch

n = torch.tensor(3.0)
for k in range(n):
    #! for k in range(int(n)):
    print(k)
