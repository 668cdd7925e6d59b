"""An argument has the name that Keras uses."""

import torch
from torch import nn

layer = nn.Conv2d(3, 8, 3, strides=2)
#! layer = nn.Conv2d(3, 8, 3, stride=2)
