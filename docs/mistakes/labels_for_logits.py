"""A loss for two classes gets a logit for each class, and labels.

Module: BCEWithLogitsLoss
"""

import torch
from torch import nn

labels = torch.tensor([0, 1, 1])
nn.BCEWithLogitsLoss()(torch.zeros(3, 2), labels)
#! nn.CrossEntropyLoss()(torch.zeros(3, 2), labels)
