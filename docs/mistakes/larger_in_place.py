"""The result of a sum does not fit into its first operand."""

import torch

x = torch.zeros(1, 3)
x += torch.zeros(2, 3)
#! x = x + torch.zeros(2, 3)
