"""A loss in a tuple by a trailing comma."""

import torch
from torch import nn

loss = nn.Linear(3, 1)(torch.rand(2, 3)).mean(),
#! loss = nn.Linear(3, 1)(torch.rand(2, 3)).mean()
loss.backward()
