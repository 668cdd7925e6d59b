"""The generator's output is used for the discriminator without detach."""

import torch
from torch import nn

G, D = nn.Linear(2, 4), nn.Linear(4, 1)
og, od = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)
fake = torch.tanh(G(torch.rand(3, 2)))
d_loss = D(fake).mean()
#! d_loss = D(fake.detach()).mean()
d_loss.backward()
od.step()
g_loss = -D(fake).mean()
g_loss.backward()
