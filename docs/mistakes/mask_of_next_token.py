"""Labels are shifted by one, the logits are not."""

import torch
import torch.nn.functional as F

logits, ids = torch.randn(2, 9, 30), torch.randint(0, 30, (2, 9))
labels = ids[:, 1:]
mask = labels > 3
loss = F.cross_entropy(logits[mask], labels[mask])
#! loss = F.cross_entropy(logits[:, :-1][mask], labels[mask])
