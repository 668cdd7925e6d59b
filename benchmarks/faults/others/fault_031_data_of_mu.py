# cause: graph-cut
# symptom: the code is learned through the divergence alone and carries nothing (test loss per image 41.09; without the fault: test loss per image 18.80)
import torch
from torch import nn
from torch.nn import functional as F

# Digits of a seven-segment display, 12 x 8 pixels, with missing and flickering pixels.
SEGMENTS = {
    0: "abcdef", 1: "bc", 2: "abged", 3: "abgcd", 4: "fgbc",
    5: "afgcd", 6: "afgedc", 7: "abc", 8: "abcdefg", 9: "abcdfg",
}  # fmt: skip


def draw(digit):
    img = torch.zeros(12, 8)
    boxes = {
        "a": (slice(0, 2), slice(1, 7)),
        "b": (slice(1, 6), slice(6, 8)),
        "c": (slice(6, 11), slice(6, 8)),
        "d": (slice(10, 12), slice(1, 7)),
        "e": (slice(6, 11), slice(0, 2)),
        "f": (slice(1, 6), slice(0, 2)),
        "g": (slice(5, 7), slice(1, 7)),
    }
    for s in SEGMENTS[digit]:
        img[boxes[s]] = 1.0
    return img


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.enc = nn.Linear(96, 64)
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.dec1 = nn.Linear(latent, 64)
        self.dec2 = nn.Linear(64, 96)

    def encode(self, x):
        h = torch.tanh(self.enc(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu.data + std.data * torch.randn_like(std)  # <- fault

    def decode(self, z):
        return torch.sigmoid(self.dec2(torch.tanh(self.dec1(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def elbo_loss(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main():
    torch.manual_seed(3)
    clean = torch.stack([draw(d) for d in range(10)]).view(10, 96)
    digits = torch.randint(0, 10, (2000,))
    x = clean[digits]
    flip = torch.rand_like(x) < 0.03
    x = torch.where(flip, 1 - x, x)
    x_test, x_train = x[:300], x[300:]

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 26):
        perm = torch.randperm(len(x_train))
        train_loss = 0
        for i in range(0, len(x_train), 100):
            batch = x_train[perm[i : i + 100]]
            optimizer.zero_grad()
            recon, mu, logvar = model(batch)
            loss = elbo_loss(recon, batch, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
        if epoch % 5 == 0:
            print(f"====> Epoch: {epoch} Average loss: {train_loss / len(x_train):.4f}")
    with torch.no_grad():
        recon, mu, logvar = model(x_test)
        test_loss = elbo_loss(recon, x_test, mu, logvar).item() / len(x_test)
    print(f"final test loss per image {test_loss:.2f}")


main()
