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

# The derivative of an image, taken in Fourier space.
images = torch.randn(2, 3, 16, 16)
k = torch.fft.fftfreq(16, d=1 / 16)
slope = torch.fft.ifft2(torch.fft.fft2(images) * (2j * math.pi * k).unsqueeze(-1)).real / 16
smooth = torch.fft.irfft2(torch.fft.rfft2(images) * torch.randn(16, 9, dtype=torch.cfloat, requires_grad=True), s=(16, 16))
print(slope.std((2, 3)), F.mse_loss(smooth, slope))

# Denoising: a mask of the spectrogram, and the signal of the masked spectra.
window = torch.hann_window(64)
pitch = torch.tensor([20.0, 60.0, 120.0]).unsqueeze(1)
x = torch.sin(2 * math.pi * pitch * torch.arange(512) / 512) + 0.1 * torch.randn(3, 512)
x = F.conv1d(x.unsqueeze(1), torch.randn(1, 1, 9), padding=4).squeeze(1)
spectra = torch.stft(x, 64, 16, window=window, return_complex=True)
mask = nn.Parameter(torch.zeros(33, 1))
optimizer = torch.optim.SGD([mask], lr=5.0)
clean = torch.sin(2 * math.pi * 20 * torch.arange(512) / 512)
for step in range(20):
    optimizer.zero_grad()
    signal = torch.istft(spectra[:1] * torch.sigmoid(mask), 64, 16, window=window, length=512)
    loss = F.mse_loss(signal, clean.unsqueeze(0))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{losses[20]:.5f} {losses[-1]:.5f}", tuple(signal.shape))

# Layers of complex numbers, trained.
net = nn.Sequential(nn.Conv1d(2, 3, 3, padding=1, dtype=torch.cfloat), nn.Tanh(), nn.Linear(8, 4, dtype=torch.cfloat))
x, y = torch.randn(5, 2, 8, dtype=torch.cfloat), torch.randn(5, 3, 4, dtype=torch.cfloat)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(10):
    error = (net(x) - y).abs().pow(2).mean()
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
print(f"error {error.item():.4f}", net, net[2].weight.grad.dtype)
