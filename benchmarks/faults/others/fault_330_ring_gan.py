# cause: optimizer-of-other-model
# symptom: the generator's points never move, the discriminator's loss goes towards 0
import torch
import torch.nn as nn

LATENT = 4


def mlp(a, h, b):
    return nn.Sequential(nn.Linear(a, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, b))


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


def real_points(n):
    angle = 6.2832 * torch.rand(n)
    radius = 2.0 + 0.1 * torch.randn(n)
    return torch.stack([3.0 + radius * angle.cos(), radius * angle.sin()], dim=1)


torch.manual_seed(2)
G = mlp(LATENT, 32, 2)
D = mlp(2, 32, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.99))  # <- fault
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.99))
G = mlp(LATENT, 48, 2)  # <- fault
G.apply(init_weights)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

for step in range(801):
    # discriminator
    real = real_points(64)
    fake = G(torch.randn(64, LATENT))
    loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    # generator
    loss_g = bce(D(G(torch.randn(64, LATENT))), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 100 == 0:
        with torch.no_grad():
            pts = G(torch.randn(500, LATENT))
            centre = pts.mean(0).tolist()
            radius = (pts - torch.tensor([3.0, 0.0])).norm(dim=1)
        print(
            f"{step:4d} loss_d {loss_d.item():.3f} loss_g {loss_g.item():.3f} "
            f"centre ({centre[0]:+.2f}, {centre[1]:+.2f}) wanted (+3, 0); radius {radius.mean().item():.2f} wanted 2.00"
        )
