"""super().__init__ without parentheses."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__
        #! super().__init__()
        self.fc = nn.Linear(3, 1)


Net()
