"""A module does not call `super().__init__()`."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 2)
        #! super().__init__(); self.fc = nn.Linear(3, 2)


Net()
