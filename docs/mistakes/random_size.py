"""The size of random numbers is a tuple."""

import torch

x = torch.randint(0, 10, 5)
#! x = torch.randint(0, 10, (5,))
