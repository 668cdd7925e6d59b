import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.t_conv1 = nn.ConvTranspose2d(4, 8, 2, stride=2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.out = nn.Conv2d(8, 1, 3, padding="same")

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = F.relu(self.t_conv1(x))
        return torch.sigmoid(self.out(self.up(x)))


model = ConvAutoencoder()
print(model)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
images = (torch.rand(16, 1, 12, 12) > 0.7).float()
images = F.avg_pool2d(images, 3, stride=1, padding=1)
for epoch in range(1, 6):
    train_loss = 0.0
    for batch in images.split(8):
        noisy = (batch + 0.1 * torch.randn_like(batch)).clamp_(0.0, 1.0)
        optimizer.zero_grad()
        loss = criterion(model(noisy), batch)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * batch.size(0)
    print(f"Epoch: {epoch} \tTraining Loss: {train_loss / len(images):.6f}")
encoder = nn.Sequential(model.conv1, nn.ReLU(), model.pool, model.conv2, nn.ReLU(), model.pool)
code = encoder(images[:2])
print(code.shape, code.sum())


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(144, 20)
        self.decoder_bias = nn.Parameter(torch.zeros(144))

    def forward(self, x):
        h = torch.sigmoid(self.encoder(x.flatten(1)))
        return F.linear(h, self.encoder.weight.t(), self.decoder_bias), h


sparse = Sparse()
opt = torch.optim.Adagrad(sparse.parameters(), lr=0.05)
rho = 0.05
for epoch in range(5):
    recon, h = sparse(images)
    rho_hat = h.mean(0)
    kl = (rho * torch.log(rho / rho_hat) + (1 - rho) * torch.log((1 - rho) / (1 - rho_hat))).sum()
    loss = F.mse_loss(recon, images.flatten(1)) + 1e-3 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss:.5f} {kl.item():.5f}")
