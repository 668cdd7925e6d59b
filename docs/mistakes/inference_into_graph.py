"""A result of inference mode is used in training."""

import torch

w = torch.ones(3, requires_grad=True)
with torch.inference_mode():
    x = torch.ones(3) * 2
loss = w * x
#! loss = w * x.clone()
