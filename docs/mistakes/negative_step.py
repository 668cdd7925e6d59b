"""Channels are reversed by a slice."""

import torch

img = torch.rand(2, 3, 4, 4)
y = img[:, ::-1]
#! y = img.flip(1)
