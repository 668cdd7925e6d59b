"""There is no GPU."""

import torch
from torch import nn

model = nn.Linear(3, 1).to("cuda")
#! model = nn.Linear(3, 1).to("cuda" if torch.cuda.is_available() else "cpu")
