"""A group's key is misspelt."""

import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.AdamW([{"param": model.parameters(), "weight_decay": 0.0}], lr=1e-3)
#! opt = torch.optim.AdamW([{"params": model.parameters(), "weight_decay": 0.0}], lr=0.001)
