"""log_softmax without dim through a wrong keyword."""

import torch

x = torch.rand(4, 8)
y = torch.softmax(x)
#! y = torch.softmax(x, dim=-1)
