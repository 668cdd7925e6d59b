"""Labels are shifted by one, the logits are not, in a flat loss."""

import torch
import torch.nn.functional as F

logits, ids = torch.randn(2, 9, 30), torch.randint(0, 30, (2, 9))
loss = F.cross_entropy(logits.view(-1, 30), ids[:, 1:].reshape(-1))
#! loss = F.cross_entropy(logits[:, :-1].reshape(-1, 30), ids[:, 1:].reshape(-1))
