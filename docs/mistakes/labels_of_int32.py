"""Class labels are int32."""

import torch
import torch.nn.functional as F

pred = torch.zeros(4, 3)
y = torch.zeros(4, dtype=torch.int32)
F.cross_entropy(pred, y)
#! F.cross_entropy(pred, y.long())
