"""A module on the meta device has no numbers that could be copied."""

import torch
from torch import nn

with torch.device("meta"):
    model = nn.Linear(4, 2)
model = model.to("cpu")
#! model = model.to_empty(device="cpu")
