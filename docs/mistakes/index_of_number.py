"""A tensor without dimensions has no first element."""

import torch

loss = torch.tensor(1.0)
loss[0]
#! loss.item()
