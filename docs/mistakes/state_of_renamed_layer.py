"""Names of layers have changed since the state was saved."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        setattr(self, name, nn.Linear(3, 2))


state = Net("fc").state_dict()
net = Net("classifier")
net.load_state_dict(state)
#! net.load_state_dict({key.replace("fc.", "classifier.", 1): value for key, value in state.items()})
