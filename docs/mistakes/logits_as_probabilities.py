"""A categorical distribution of logits as probabilities."""

import torch

torch.manual_seed(0)
logits = torch.randn(4, 3)
d = torch.distributions.Categorical(logits)
#! d = torch.distributions.Categorical(logits=logits)
