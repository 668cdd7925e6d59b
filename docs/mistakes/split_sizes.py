"""The sizes of a split do not add up."""

import torch
from torch.utils.data import random_split

data = list(range(10))
parts = random_split(data, [7, 2])
#! parts = random_split(data, [7, 3])
