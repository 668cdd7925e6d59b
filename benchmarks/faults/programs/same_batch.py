# cause: same-batch-again
"""An autoencoder of noisy curves, in two modules."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(6)
t = torch.linspace(0, 1, 32)
freq = torch.rand(600, 1) * 4 + 1
phase = torch.rand(600, 1) * 2 * math.pi
curves = torch.sin(2 * math.pi * freq * t + phase)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 6))

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 32))

    def forward(self, z):
        return self.net(z)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Decoder()

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z)


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(curves, batch_size=60)
losses = []
for epoch in range(25):
    for _ in range(10):
        batch = next(iter(loader))  # <- fault
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 5 == 0:
        print(epoch, losses[-1])
print("mean of the last losses", sum(losses[-10:]) / 10)
