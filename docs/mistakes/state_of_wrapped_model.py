"""A state of a wrapped model: the prefix module., beside other entries."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)


saved = {"state": {"module." + k: v for k, v in Net().state_dict().items()}, "epoch": 3}
net = Net()
net.load_state_dict(saved)
#! net.load_state_dict({key.removeprefix("module."): value for key, value in saved["state"].items()})
