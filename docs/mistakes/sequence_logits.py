"""The classes of a sequence's predictions come last.

Module: CrossEntropyLoss
"""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss()
logits = torch.zeros(2, 7, 50)
tokens = torch.zeros(2, 7, dtype=torch.long)
loss_fn(logits, tokens)
#! loss_fn(logits.transpose(1, 2), tokens)
