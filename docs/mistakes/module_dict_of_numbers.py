"""A key of a ModuleDict is a number."""

import torch
from torch import nn

heads = nn.ModuleDict({0: nn.Linear(3, 1), 1: nn.Linear(3, 1)})
#! heads = nn.ModuleDict({"0": nn.Linear(3, 1), "1": nn.Linear(3, 1)})
