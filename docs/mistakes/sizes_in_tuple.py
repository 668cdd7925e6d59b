"""Linear's sizes given as a tuple."""

import torch
from torch import nn

net = nn.Linear((3, 4))
#! net = nn.Linear(3, 4)
