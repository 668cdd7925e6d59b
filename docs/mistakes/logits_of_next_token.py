"""Labels are shifted by one, the logits are not, in a loss."""

import torch
import torch.nn.functional as F

logits, ids = torch.randn(2, 9, 30), torch.randint(0, 30, (2, 9))
loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
#! loss = F.cross_entropy(logits.transpose(1, 2)[..., :-1], ids[:, 1:])
