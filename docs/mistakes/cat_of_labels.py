"""A label per sample is joined with feature maps."""

import torch

x, c = torch.rand(4, 3, 8, 8), torch.rand(4, 5)
h = torch.cat([x, c], dim=1)
#! h = torch.cat([x, c[..., None, None].expand(-1, -1, *x.shape[2:])], dim=1)
