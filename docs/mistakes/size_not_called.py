"""size is not called."""

import torch

x = torch.rand(4, 3)
n = x.size[0]
#! n = x.size(0)
