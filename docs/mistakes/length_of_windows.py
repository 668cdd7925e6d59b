"""__len__ is larger than what __getitem__ has."""

import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, series, size):
        self.series, self.size = series, size
        self.starts = [i for i in range(0, len(series) - size)]

    def __len__(self):
        return len(self.series)
        #! return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        return self.series[s:s + self.size]


for w in DataLoader(Windows(torch.arange(20.0), 5), batch_size=4):
    print(w.shape)
