"""A data set's items are dicts of lists of different lengths."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset):
    def __init__(self):
        self.rows = [[1, 2, 3], [4, 5], [6]]

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"ids": torch.tensor(self.rows[i]), "label": i}


for batch in DataLoader(Tokens(), batch_size=3):
    #! for batch in DataLoader(Tokens(), batch_size=3, collate_fn=lambda batch: {"ids": nn.utils.rnn.pad_sequence([each["ids"] for each in batch], batch_first=True), "label": torch.utils.data.default_collate([each["label"] for each in batch])}):
    print(batch["ids"].shape)
