"""Images without a batch dimension are resized."""

import torch
import torch.nn.functional as F

image = torch.zeros(3, 32, 32)
y = F.interpolate(image, size=(64, 64), mode="bilinear")
#! y = F.interpolate(image.unsqueeze(0), size=(64, 64), mode="bilinear")
