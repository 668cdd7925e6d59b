"""__getitem__ forgets to return."""

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.x = torch.rand(8, 3)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        row = self.x[i]
        sample = row, row.sum()
        #! return row, row.sum()


for x, y in DataLoader(Rows(), batch_size=4):
    print(x.shape)
