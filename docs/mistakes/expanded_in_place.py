"""An expanded tensor is written."""

import torch

x = torch.zeros(3, 1).expand(3, 4)
x[0, 0] = 1
x.add_(1)
#! x = x.clone(); x.add_(1)
