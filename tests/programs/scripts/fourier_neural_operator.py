import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SpectralConv1d(nn.Module):
    def __init__(self, in_channels, out_channels, modes):
        super().__init__()
        self.modes = modes
        scale = 1 / (in_channels * out_channels)
        weights = torch.rand(in_channels, out_channels, modes, dtype=torch.cfloat)
        self.weights = nn.Parameter(scale * weights)

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        out = torch.zeros(x.size(0), self.weights.size(1), x.size(-1) // 2 + 1, dtype=torch.cfloat)
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", spectrum[:, :, : self.modes], self.weights)
        return torch.fft.irfft(out, n=x.size(-1))


class SpectralConv2d(nn.Module):
    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.low = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) / channels**2)
        self.high = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) / channels**2)

    def forward(self, x):
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))


class FNO1d(nn.Module):
    def __init__(self, width=8, modes=6, layers=2):
        super().__init__()
        self.lift = nn.Linear(2, width)
        self.spectral = nn.ModuleList([SpectralConv1d(width, width, modes) for _ in range(layers)])
        self.local = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(layers)])
        self.project = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, 1))

    def forward(self, x):
        grid = torch.linspace(0, 1, x.size(1)).reshape(1, -1, 1).repeat(x.size(0), 1, 1)
        x = self.lift(torch.cat((x, grid), dim=-1)).permute(0, 2, 1)
        for spectral, local in zip(self.spectral, self.local):
            x = F.gelu(spectral(x) + local(x))
        return self.project(x.permute(0, 2, 1))


torch.manual_seed(0)
s = torch.linspace(0, 1, 33)[:-1]
phase, frequency = 2 * math.pi * torch.rand(16, 1), torch.randint(1, 4, (16, 1))
a = torch.sin(2 * math.pi * frequency * s + phase).unsqueeze(-1)
u = torch.cos(2 * math.pi * frequency * s + phase).unsqueeze(-1) / frequency.unsqueeze(-1)

model = FNO1d()
print(sum(p.numel() for p in model.parameters()), [str(p.dtype) for p in model.spectral.parameters()])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
losses = []
for step in range(20):
    optimizer.zero_grad()
    out = model(a)
    loss = torch.norm((out - u).reshape(16, -1), dim=1).div(torch.norm(u.reshape(16, -1), dim=1)).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 5 == 0:
        print(step, f"{loss.item():.6f}")
print(losses[-1] < losses[0])

# The same convolution of images, with the derivative of the result taken in Fourier space.
layer = SpectralConv2d(3, 4)
optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
images = torch.randn(2, 3, 16, 16)
k = torch.fft.fftfreq(16, d=1 / 16)
target = torch.fft.ifft2(torch.fft.fft2(images) * (2j * math.pi * k).unsqueeze(-1)).real / 16
image_losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = F.mse_loss(layer(images), target)
    loss.backward()
    optimizer.step()
    image_losses.append(loss.item())
print([f"{each:.5f}" for each in image_losses[::5]])
