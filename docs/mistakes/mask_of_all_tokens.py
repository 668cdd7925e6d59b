"""A loss per token is multiplied with a mask of all tokens."""

import torch
import torch.nn.functional as F

logits, ids = torch.randn(4, 9, 30), torch.randint(0, 30, (4, 9))
mask = ids != 0
losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
loss = (losses * mask).sum() / mask.sum()
#! loss = (losses * mask[:, 1:]).sum() / mask.sum()
