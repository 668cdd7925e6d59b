"""A tensor is looked up in a dictionary of numbers."""

import torch

names = {0: "cat", 1: "dog"}
best = torch.tensor([0.1, 0.9]).argmax()
names[best]
#! names[best.item()]
