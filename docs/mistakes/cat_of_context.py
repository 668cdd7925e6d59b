"""A vector per sequence is joined with each step."""

import torch

out, ctx = torch.rand(4, 7, 16), torch.rand(4, 8)
h = torch.cat([out, ctx], dim=-1)
#! h = torch.cat([out, ctx[:, None].expand(-1, out.shape[1], -1)], dim=-1)
