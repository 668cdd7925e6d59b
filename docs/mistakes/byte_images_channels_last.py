"""A transform returns an array, the model wants tensors of floats channels first.

Module: Conv2d
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pics(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.zeros((8, 8, 3), dtype=np.uint8), i


net = nn.Conv2d(3, 4, 3)
for x, y in DataLoader(Pics(), batch_size=2):
    net(x)
    #! net(x.permute(0, 3, 1, 2).float() / 255)
