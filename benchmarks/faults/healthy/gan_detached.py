"""A GAN: two optimizers, losses that do not fall, a batch norm that acts while samples are drawn."""

import torch
from torch import nn

torch.manual_seed(0)
real_data = torch.randn(2000, 2) * 0.3 + torch.tensor([1.0, -1.0])
G = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(32, 1), nn.Sigmoid())
criterion = nn.BCELoss()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
fixed = torch.randn(64, 4)
for step in range(150):
    real = real_data[torch.randint(0, 2000, (64,))]
    D.zero_grad()
    loss_real = criterion(D(real).view(-1), torch.ones(64))
    loss_real.backward()
    fake = G(torch.randn(64, 4))
    loss_fake = criterion(D(fake.detach()).view(-1), torch.zeros(64))
    loss_fake.backward()
    opt_d.step()
    G.zero_grad()
    loss_g = criterion(D(fake).view(-1), torch.ones(64))
    loss_g.backward()
    opt_g.step()
    if step % 50 == 0:
        with torch.no_grad():
            sample = G(fixed)
        print(step, loss_real.item() + loss_fake.item(), loss_g.item(), sample.mean().item())
