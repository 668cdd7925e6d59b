"""Two tensors cannot be broadcast."""

import torch

a = torch.zeros(4, 3)
b = torch.zeros(4)
c = a + b
#! c = a + b.unsqueeze(-1)
