"""A normal distribution with a negative scale."""

import torch
from torch import nn

torch.manual_seed(0)
head = nn.Linear(4, 2)
mu, sigma = head(10 * torch.randn(8, 4)).chunk(2, dim=-1)
d = torch.distributions.Normal(mu, sigma)
#! d = torch.distributions.Normal(mu, nn.functional.softplus(sigma))
