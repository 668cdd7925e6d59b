"""A batch's key is misspelt."""

import torch
from torch.utils.data import DataLoader

data = [{"image": torch.rand(3), "label": k} for k in range(4)]
for batch in DataLoader(data, batch_size=2):
    x, y = batch["image"], batch["labels"]
    #! x, y = batch["image"], batch["label"]
