"""shape is called."""

import torch

x = torch.rand(4, 3)
n = x.shape(0)
#! n = x.shape[0]
