"""A mask of padded frames is longer than the frames."""

import torch

frames = torch.zeros(4, 30, 8)
lengths = torch.tensor([30, 20, 25, 10])
mask = torch.arange(40)[None, :] < lengths[:, None]
frames = frames * mask.unsqueeze(-1)
#! frames = frames * mask.unsqueeze(-1)[:, :frames.shape[1]]
