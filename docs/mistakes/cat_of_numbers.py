"""Tensors without dimensions cannot be joined along one."""

import torch

losses = [torch.tensor(1.0), torch.tensor(2.0)]
torch.cat(losses)
#! torch.stack(losses)
