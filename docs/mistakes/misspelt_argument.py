"""An argument is misspelt."""

import torch
from torch import nn

layer = nn.Linear(3, out_feature=2)
#! layer = nn.Linear(3, out_features=2)
