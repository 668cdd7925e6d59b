"""math.sqrt of a tensor of several elements."""

import math
import torch

x = torch.rand(4)
y = math.sqrt(x)
#! y = torch.sqrt(x)
