"""A batch that is a dictionary goes into the model.

Module: Linear
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

data = [{"image": torch.rand(3), "label": k} for k in range(4)]
model = nn.Linear(3, 2)
for batch in DataLoader(data, batch_size=2):
    y = model(batch)
    #! y = model(batch["image"])
