"""multinomial draws more than there are."""

import torch

i = torch.multinomial(torch.rand(5), 10)
#! i = torch.multinomial(torch.rand(5), 10, replacement=True)
