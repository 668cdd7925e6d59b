"""torch.sum of a list of losses."""

import torch

losses = [torch.rand(()), torch.rand(())]
total = torch.sum(losses)
#! total = torch.sum(torch.stack(losses))
