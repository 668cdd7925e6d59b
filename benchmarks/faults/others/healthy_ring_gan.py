"""A GAN that learns points on a ring; the generator's output is detached for the critic."""
import torch
import torch.nn as nn

torch.manual_seed(45)
NOISE = 4


def real(n):
    a = 2 * torch.pi * torch.rand(n, 1)
    r = 1.0 + 0.05 * torch.randn(n, 1)
    return torch.cat([r * a.cos(), r * a.sin()], dim=1)


def net(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


G, D = net([NOISE, 64, 64, 2]), net([2, 64, 64, 1])
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(64, 1), torch.zeros(64, 1)

for step in range(900):
    fake = G(torch.randn(64, NOISE))

    d_loss = bce(D(real(64)), 0.9 * one) + bce(D(fake.detach()), zero)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = bce(D(fake), one)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    if step % 150 == 0:
        print(f"step {step}: critic {d_loss.item():.3f} generator {g_loss.item():.3f}")

with torch.no_grad():
    radius = G(torch.randn(2000, NOISE)).norm(dim=1)
print(f"radius {radius.mean().item():.3f} +- {radius.std().item():.3f}")
print(f"final mean distance from the ring {(radius - 1).abs().mean().item():.3f}")
