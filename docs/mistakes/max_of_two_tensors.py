"""Python's max of two tensors."""

import torch

a, b = torch.rand(3), torch.rand(3)
c = max(a, b)
#! c = torch.maximum(a, b)
