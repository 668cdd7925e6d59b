import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Spectrogram(nn.Module):
    def __init__(self, n_fft=64, hop_length=32):
        super().__init__()
        self.n_fft, self.hop_length = n_fft, hop_length
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, x):
        spectra = torch.stft(x, self.n_fft, self.hop_length, window=self.window, return_complex=True)
        return torch.log(spectra.abs() + 0.1).unsqueeze(1)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(1, 1, 9) / 3)
        self.spectrogram = Spectrogram()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.out = nn.Linear(16, classes)

    def forward(self, x):
        x = F.conv1d(x.unsqueeze(1), self.filter, padding=4).squeeze(1)
        return self.out(self.features(self.spectrogram(x)))


def signals(count):
    labels = torch.arange(count) % 3
    t = torch.arange(512) / 512
    pitch = torch.tensor([20.0, 60.0, 120.0])[labels].unsqueeze(1)
    sweep = torch.rand(count, 1) * 20
    x = torch.sin(2 * math.pi * (pitch * t + sweep * t**2)) + 0.1 * torch.randn(count, 512)
    return x, labels


torch.manual_seed(0)
x, labels = signals(24)
model = Classifier(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 5 == 0:
        print(step, f"{loss.item():.6f}")
print((model(x).argmax(1) == labels).sum().item())

# Denoising: a mask of the spectrogram, and the signal of the masked spectra.
window = torch.hann_window(64)
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
