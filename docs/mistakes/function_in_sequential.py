"""A function in a Sequential."""

import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(3, 3), F.relu, nn.Linear(3, 1))
#! net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
