"""The last valid steps of padded sequences are gathered."""

import torch

out, lengths = torch.rand(4, 9, 16), torch.tensor([9, 5, 7, 2])
last = out.gather(1, lengths - 1)
#! last = out.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, out.shape[-1])).squeeze(1)
