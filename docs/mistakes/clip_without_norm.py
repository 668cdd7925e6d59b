"""Gradients are clipped without a largest norm."""

import torch
from torch import nn

model = nn.Linear(4, 2)
model(torch.ones(1, 4)).sum().backward()
nn.utils.clip_grad_norm_(model.parameters())
#! nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
