import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


grid = torch.linspace(-1, 1, 8)
yy, xx = torch.meshgrid(grid, grid, indexing="ij")
centers = torch.rand(128, 2) * 1.6 - 0.8
images = torch.exp(
    -((xx - centers[:, 0, None, None]) ** 2 + (yy - centers[:, 1, None, None]) ** 2) / 0.1
)
train_loader = DataLoader(images.unsqueeze(1), batch_size=32, shuffle=True)


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 2 == 0:
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)} ({100.0 * batch_idx / len(train_loader):.0f}%)]\tLoss: {loss.item() / len(data):.6f}"
            )
    print(
        f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}"
    )


for epoch in range(1, 5):
    train(epoch)
with torch.no_grad():
    sample = model.decode(torch.randn(2, 4)).cpu().view(2, 1, 8, 8)
    print(sample[0, 0, :2], sample.min(), sample.max())
with torch.no_grad():
    mu, logvar = model.encode(images.view(-1, 64))
q = torch.distributions.Normal(mu, torch.exp(0.5 * logvar))
kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum()
print(torch.allclose(kl, -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()), rtol=1e-4))
