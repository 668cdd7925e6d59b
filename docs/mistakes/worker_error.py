"""A data set fails in a worker."""

import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.zeros(3) + torch.zeros(4)
        #: return torch.zeros(3) + torch.zeros(3)


if __name__ == "__main__":
    for batch in DataLoader(Data(), batch_size=2, num_workers=1):
        pass
