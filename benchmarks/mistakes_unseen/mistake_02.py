# remedy: pad or resize before torch.cat: up = F.interpolate(up, size=skip.shape[-2:]) (25 pixels are halved to 12, and doubled to 24)
import torch
from torch import nn
import torch.nn.functional as F


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, channels // 2, 2, stride=2)
        self.conv = nn.Conv2d(channels, channels // 2, 3, padding=1)

    def forward(self, x, skip):
        up = self.up(x)
        return F.relu(self.conv(torch.cat([skip, up], dim=1)))  # <- fault


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.decoder = nn.ModuleList([Up(32), Up(16)])

    def forward(self, x):
        a = F.relu(self.enc1(x))
        b = F.relu(self.enc2(F.max_pool2d(a, 2)))
        c = F.relu(self.enc3(F.max_pool2d(b, 2)))
        return self.decoder[1](self.decoder[0](c, b), a)


UNet()(torch.randn(4, 1, 50, 50))
