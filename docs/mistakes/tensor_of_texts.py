"""Labels are texts."""

import torch

labels = ["cat", "dog"]
y = torch.tensor(labels)
#! y = torch.tensor([sorted(set(labels)).index(label) for label in labels])
