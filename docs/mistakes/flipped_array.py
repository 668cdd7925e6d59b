"""An array is read backwards."""

import numpy as np

import torch

image = np.zeros((4, 4), np.float32)[::-1]
torch.from_numpy(image)
#! torch.from_numpy(image.copy())
