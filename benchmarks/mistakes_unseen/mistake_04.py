# remedy: LayerNorm(48) wants 48 features last: self.norm(x.transpose(1, 2)).transpose(1, 2)
import torch
import torch.nn as nn


class ConvBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=1)
        self.norm = nn.LayerNorm(channels)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.norm(self.conv(x)))  # <- fault


class AudioEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Conv1d(40, 48, 1)
        self.blocks = nn.Sequential(*[ConvBlock(48) for _ in range(3)])

    def forward(self, spectrogram):
        return self.blocks(self.project(spectrogram))


encoder = AudioEncoder()
print(encoder(torch.randn(8, 40, 120)).shape)
