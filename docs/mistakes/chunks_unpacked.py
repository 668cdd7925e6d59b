"""chunk into two where three are unpacked."""

import torch

q, k, v = torch.rand(2, 10, 96).chunk(2, dim=-1)
#! q, k, v = torch.rand(2, 10, 96).chunk(3, dim=-1)
