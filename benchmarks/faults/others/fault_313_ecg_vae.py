# cause: loss-kept-with-graph
# symptom: the epoch totals print with grad_fn=..., and memory and kept graph nodes grow with each step
import torch
import torch.nn as nn
import torch.nn.functional as F


class BeatVAE(nn.Module):
    """Variational autoencoder for one heart beat sampled at 64 points."""

    def __init__(self, length=64, latent=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, 96), nn.Tanh(), nn.Linear(96, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 96), nn.Tanh(), nn.Linear(96, length))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def elbo_terms(recon, x, mu, logvar):
    rec = F.mse_loss(recon, x, reduction="none").sum(-1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
    return rec, kl


def fake_beats(n):
    t = torch.linspace(0, 1, 64)
    shift = 0.04 * torch.randn(n, 1)
    height = 1 + 0.2 * torch.randn(n, 1)
    qrs = height * torch.exp(-((t - 0.4 - shift) / 0.03) ** 2)
    p = 0.25 * torch.exp(-((t - 0.22 - shift) / 0.04) ** 2)
    tw = (0.35 + 0.1 * torch.randn(n, 1)) * torch.exp(-((t - 0.7 - shift) / 0.07) ** 2)
    return p + qrs + tw + 0.02 * torch.randn(n, 64)


torch.manual_seed(4)
beats = fake_beats(1500)
vae = BeatVAE()
opt = torch.optim.Adam(vae.parameters(), lr=3e-3)
history = []
for epoch in range(12):
    epoch_total = 0
    n_batches = 0
    for idx in torch.randperm(len(beats)).split(50):
        x = beats[idx]
        recon, mu, logvar = vae(x)
        rec, kl = elbo_terms(recon, x, mu, logvar)
        loss = rec + 0.02 * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_total += loss  # <- fault
        n_batches += 1
    history.append(epoch_total / n_batches)  # <- fault
    print("epoch", epoch, "neg. ELBO", history[-1])

print("first / last:", history[0], history[-1])
