"""Labels of -1 mark what is not to be counted."""

import torch
import torch.nn.functional as F

pred = torch.zeros(3, 5)
y = torch.tensor([0, 4, -1])
F.cross_entropy(pred, y)
#! F.cross_entropy(pred, y, ignore_index=-1)
