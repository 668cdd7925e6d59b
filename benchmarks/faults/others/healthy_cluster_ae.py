"""Autoencoder whose clustering layer gets its own optimizer, which starts after a warm phase."""
import torch
from torch import nn


class ClusterAE(nn.Module):
    def __init__(self, n_in=20, latent=3, k=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, n_in))
        self.centres = nn.Parameter(torch.randn(k, latent))

    def assign(self, z):
        q = 1 / (1 + (z[:, None] - self.centres).pow(2).sum(-1))
        return q / q.sum(1, keepdim=True)


def sharpen(q):
    w = q ** 2 / q.sum(0)
    return (w / w.sum(1, keepdim=True)).detach()  # fixed target for this step


def farthest_points(z, k):
    picked = [z[0]]
    for _ in range(k - 1):
        gap = torch.cdist(z, torch.stack(picked)).min(1).values
        picked.append(z[gap.argmax()])
    return torch.stack(picked)


def main(warm=10, epochs=25):
    torch.manual_seed(2)
    group = torch.randint(0, 4, (1000,))
    x = (2 * torch.randn(4, 20))[group] + 0.7 * torch.randn(1000, 20)
    x = (x - x.mean(0)) / x.std(0)
    model = ClusterAE()
    opt_ae = torch.optim.Adam([*model.encoder.parameters(), *model.decoder.parameters()], lr=3e-3)
    opt_centres = torch.optim.Adam([model.centres], lr=1e-2)
    curve = []
    for epoch in range(epochs):
        if epoch == warm:
            with torch.no_grad():
                model.centres.copy_(farthest_points(model.encoder(x), 4))
        seen = 0.0
        for xb in x[torch.randperm(len(x))].split(50):
            z = model.encoder(xb)
            loss = nn.functional.mse_loss(model.decoder(z), xb)
            if epoch >= warm:
                q = model.assign(z)
                loss = loss + 0.1 * (sharpen(q) * (sharpen(q) / q).log()).sum(1).mean()
            opt_ae.zero_grad()
            opt_centres.zero_grad()
            loss.backward()
            opt_ae.step()
            if epoch >= warm:
                opt_centres.step()
            seen += loss.item() * len(xb)
        curve.append(seen / len(x))
        if epoch % 4 == 0:
            print(f"epoch {epoch} loss {curve[-1]:.4f}", "(clustering)" if epoch >= warm else "(warm)")
    with torch.no_grad():
        label = model.assign(model.encoder(x)).argmax(1)
    purity = sum(torch.bincount(group[label == c], minlength=4).max().item() for c in range(4)) / len(x)
    print(f"cluster purity {purity:.3f}")


main()
