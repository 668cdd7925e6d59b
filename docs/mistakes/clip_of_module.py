"""The gradients of a model are clipped by its parameters."""

import torch
from torch import nn

model = nn.Linear(3, 1)
nn.utils.clip_grad_norm_(model, 1.0)
#! nn.utils.clip_grad_norm_(model.parameters(), 1.0)
