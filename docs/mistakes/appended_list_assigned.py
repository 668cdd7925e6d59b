"""The result of a call that returns None is used: an in-place function of a list."""

import torch

parts = [torch.rand(2)]
parts = parts.append(torch.rand(2))
#! parts.append(torch.rand(2))
x = torch.cat(parts)
