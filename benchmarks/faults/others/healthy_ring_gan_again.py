# GAN on points of a ring; the fakes are detached for the critic's step on purpose.
import torch
from torch import nn

torch.manual_seed(0)
LATENT, BATCH = 4, 128


def real_points(n):
    angle = torch.rand(n) * 6.2832
    radius = 1 + 0.05 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


generator = nn.Sequential(nn.Linear(LATENT, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
                          nn.Linear(64, 2))
discriminator = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
                              nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
log = {"d": [], "g": []}

for step in range(600):
    # discriminator
    fake = generator(torch.randn(BATCH, LATENT))
    d_loss = bce(discriminator(real_points(BATCH)), 0.9 * ones) + bce(discriminator(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    # generator; the discriminator's gradients from this pass are dropped by its next zero_grad
    g_loss = bce(discriminator(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    log["d"].append(d_loss.item())
    log["g"].append(g_loss.item())
    if step % 100 == 99:
        with torch.no_grad():
            pts = generator(torch.randn(1000, LATENT))
            off = (pts.norm(dim=1) - 1).abs().mean().item()
            centre = pts.mean(0).norm().item()
        print(f"{step + 1}: d {sum(log['d'][-100:]) / 100:.3f} g {sum(log['g'][-100:]) / 100:.3f} "
              f"distance from ring {off:.3f} centre {centre:.3f}")
