# cause: step-missing
# symptom: reconstruction and KL terms stay at their first values for the whole run
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, d=64, h=64, z=4):
        super().__init__()
        self.enc = nn.Linear(d, h)
        self.mu = nn.Linear(h, z)
        self.logvar = nn.Linear(h, z)
        self.dec1 = nn.Linear(z, h)
        self.dec2 = nn.Linear(h, d)

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec2(F.relu(self.dec1(z))), mu, logvar


def draw_blobs(n, side=8):
    """n pictures of one soft round spot, flattened."""
    g = torch.arange(side).float()
    cx = 1 + 5 * torch.rand(n, 1, 1)
    cy = 1 + 5 * torch.rand(n, 1, 1)
    img = torch.exp(-((g.view(1, 1, -1) - cx) ** 2 + (g.view(1, -1, 1) - cy) ** 2) / 3.0)
    return img.reshape(n, -1)


def main():
    torch.manual_seed(0)
    data = draw_blobs(1200)
    vae = VAE()
    opt = torch.optim.Adam(vae.parameters(), lr=2e-3)  # <- fault
    for epoch in range(12):
        perm = torch.randperm(len(data))
        rec_sum = kl_sum = 0.0
        for chunk in perm.split(60):
            x = data[chunk]
            logits, mu, logvar = vae(x)
            rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
            kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum() / len(x)
            loss = rec + 0.5 * kl
            opt.zero_grad()
            loss.backward()  # <- fault
            nn.utils.clip_grad_norm_(vae.parameters(), 10.0)  # <- fault
            rec_sum += rec.item()
            kl_sum += kl.item()
        print("epoch %2d  rec %.3f  kl %.3f" % (epoch, rec_sum / 20, kl_sum / 20))


if __name__ == "__main__":
    main()
