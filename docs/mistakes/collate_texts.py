"""Texts of different lengths, with their labels, are no batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader

data = [(torch.arange(k), k % 2) for k in (3, 5)]
loader = DataLoader(data, batch_size=2)
#! loader = DataLoader(data, batch_size=2, collate_fn=lambda batch: (nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([y for _, y in batch])))
next(iter(loader))
