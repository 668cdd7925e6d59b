"""A batch size is a float."""

import torch
from torch.utils.data import DataLoader

loader = DataLoader([torch.zeros(3)] * 4, batch_size=4 / 2)
#! loader = DataLoader([torch.zeros(3)] * 4, batch_size=int(4 / 2))
