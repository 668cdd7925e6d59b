"""max over a dimension is compared with labels."""

import torch

logits, labels = torch.rand(4, 6), torch.randint(0, 6, (4,))
pred = torch.max(logits, 1)
#! _, pred = torch.max(logits, 1)
acc = (pred == labels).float().mean()
