"""super(OtherNet, self) after a copied class."""

import torch
from torch import nn


class OldNet(nn.Module):
    def __init__(self):
        super(OldNet, self).__init__()


class NewNet(nn.Module):
    def __init__(self):
        super(OldNet, self).__init__()
        #! super().__init__()
        self.fc = nn.Linear(3, 1)


NewNet()
