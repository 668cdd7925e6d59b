"""A model's dictionary is read like an object."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return {"logits": self.fc(x)}


out = Net()(torch.rand(4, 3))
pred = out.logits.argmax(1)
#! pred = out["logits"].argmax(1)
