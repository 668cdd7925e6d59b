import torch
import math

import torch.nn as nn

torch.manual_seed(11)
BATCH, LATENT = 128, 4


def real_batch(n):
    """Points near a circle of radius 1."""
    angle = 2 * math.pi * torch.rand(n)
    radius = 1 + 0.05 * torch.randn(n)
    return torch.stack((radius * angle.cos(), radius * angle.sin()), 1)


G = nn.Sequential(nn.Linear(LATENT, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 2))
D = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

for step in range(1500):
    # discriminator
    real = real_batch(BATCH)
    fake = G(torch.randn(BATCH, LATENT))
    loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    # generator
    loss_g = bce(D(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 300 == 0:
        print(f"[{step}] loss_D {loss_d.item():.3f} loss_G {loss_g.item():.3f}")

with torch.no_grad():
    sample = G(torch.randn(2000, LATENT))
    r = sample.norm(dim=1)
    near = ((r - 1).abs() < 0.25).float().mean().item()
    center = sample.mean(0).norm().item()
print(f"distance of the samples' mean from the centre {center:.2f}")
print(f"final share of samples on the ring {near:.3f}")
