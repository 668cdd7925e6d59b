"""The loss of a generator was computed before the discriminator's step."""

import torch
from torch import nn

G, D = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(D.parameters(), lr=0.1)
fake = G(torch.randn(3, 4))
score = D(fake)
loss_g = -score.mean()
D(fake.detach()).mean().backward()
opt.step()
#! opt.step(); score = D(fake); loss_g = -score.mean()
loss_g.backward()
