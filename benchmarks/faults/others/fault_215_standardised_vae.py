# cause: wrong-loss
# symptom: the loss is deeply negative and the reconstruction explains nothing (explained variance -1102341029176603.500; without the fault: explained variance 0.858)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)

# Gene expression of cells of five types: 30 genes, standardised.
types = torch.randn(5, 30) * 1.5
cells = types[torch.randint(5, (1500,))] + 0.5 * torch.randn(1500, 30)
cells = (cells - cells.mean(0)) / cells.std(0)
train, test = cells[:1200], cells[1200:]


class VAE(nn.Module):
    def __init__(self, genes=30, latent=4):
        super().__init__()
        self.enc = nn.Linear(genes, 64)
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, genes))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(recon, x, reduction="sum")  # <- fault
    kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
    return (rec + 0.2 * kld) / len(x)


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=3e-3)
for epoch in range(40):
    vae.train()
    total = 0.0
    for x in torch.split(train[torch.randperm(1200)], 60):
        opt.zero_grad()
        loss = elbo(*(lambda r, m, v: (r, x, m, v))(*vae(x)))
        loss.backward()
        opt.step()
        total += loss.item() / 20
    if epoch % 8 == 7:
        print(f"epoch {epoch + 1}: {total:.3f}")

vae.eval()
with torch.no_grad():
    recon = vae(test)[0]
print(f"final explained variance {1 - F.mse_loss(recon, test).item() / test.var().item():.3f}")
