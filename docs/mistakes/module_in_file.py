"""A file holds a module, rather than its state."""

import io

import torch
from torch import nn

buffer = io.BytesIO()
torch.save(nn.Linear(4, 2), buffer)
buffer.seek(0)
model = torch.load(buffer)
#! model = torch.load(buffer, weights_only=False)
