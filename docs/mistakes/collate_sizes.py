"""Samples of different lengths cannot be stacked to a batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader

data = [torch.zeros(3), torch.zeros(5)]
loader = DataLoader(data, batch_size=2)
#! loader = DataLoader(data, batch_size=2, collate_fn=lambda batch: nn.utils.rnn.pad_sequence(batch, batch_first=True))
for batch in loader:
    pass
