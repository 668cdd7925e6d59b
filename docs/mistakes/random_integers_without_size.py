"""randint without a size."""

import torch

x = torch.randint(0, 10)
#! x = torch.randint(0, 10, (1,))
