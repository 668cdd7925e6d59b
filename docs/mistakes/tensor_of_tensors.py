"""A list of tensors is no tensor."""

import torch

rows = [torch.zeros(3), torch.zeros(3)]
x = torch.tensor(rows)
#! x = torch.stack(rows)
