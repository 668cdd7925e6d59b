"""A parameter is assigned before `super().__init__()`."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(torch.ones(1))
        #! super().__init__(); self.scale = nn.Parameter(torch.ones(1))


Scale()
