"""Reflection pads only some of the dimensions."""

import torch
import torch.nn.functional as F

image = torch.zeros(8, 8)
y = F.pad(image, (1, 1, 1, 1), mode="reflect")
#! y = F.pad(image.unsqueeze(0), (1, 1, 1, 1), mode="reflect")
