"""A data set returns None for broken samples."""

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self):
        self.x = [torch.rand(3, 4, 4) for _ in range(8)]
        self.x[3] = None

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if self.x[i] is None:
            return None
        return self.x[i], i % 2


for x, y in DataLoader(Images(), batch_size=4):
    #! for x, y in DataLoader(Images(), batch_size=4, collate_fn=lambda batch: torch.utils.data.default_collate([each for each in batch if each is not None])):
    print(x.shape)
