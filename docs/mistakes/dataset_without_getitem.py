"""A data set has no `__getitem__`."""

import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 4

    def get_item(self, i):
        #! def __getitem__(self, i):
        return torch.zeros(3)


next(iter(DataLoader(Data())))
