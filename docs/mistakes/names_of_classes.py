"""A list is indexed with a tensor of several indices."""

import torch

names, best = ["cat", "dog"], torch.tensor([0, 1, 1])
names[best]
#! [names[k] for k in best.tolist()]
