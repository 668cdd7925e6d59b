"""A sample is None, as where a file could not be read."""

import torch
from torch.utils.data import DataLoader

samples = [torch.zeros(3), None]
loader = DataLoader(samples, batch_size=2)
#! loader = DataLoader(samples, batch_size=2, collate_fn=lambda batch: torch.utils.data.default_collate([each for each in batch if each is not None]))
for batch in loader:
    pass
