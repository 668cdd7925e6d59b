"""padding='same' with a stride."""

import torch
from torch import nn

net = nn.Conv2d(3, 16, 3, stride=2, padding="same")
#! net = nn.Conv2d(3, 16, 3, stride=2, padding=1)
