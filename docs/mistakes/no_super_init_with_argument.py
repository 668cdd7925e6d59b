"""super().__init__() is forgotten; the base is a user's own class."""

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)


class Net(Base):
    def __init__(self, width):
        self.head = nn.Linear(width, 1)
        #! super().__init__(width); self.head = nn.Linear(width, 1)


Net(4)
